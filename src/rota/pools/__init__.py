"""Places where jobs run: the `Pool` contracts, and one adapter for each kind of place. Knows no jobs."""
