"""The SQLite store: schema, statements, reads, writes and integrity checks of one database file."""
