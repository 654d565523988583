"""A store in plain dictionaries, for tests and the simulator. It keeps nothing on disk."""
