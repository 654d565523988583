"""Where jobs run: one contract, one adapter per kind of place."""
