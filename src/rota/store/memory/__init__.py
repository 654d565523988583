"""The store in plain dictionaries, for tests and the simulator."""
