"""The embedded store: one SQLite file, its schema, statements and checks."""
