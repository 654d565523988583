"""Where missing keys come from, and who has them. The contract is in `base`; the ledgers themselves run inside."""
