"""How batches get to workers. The contract is in `base`; each adapter is one module."""
