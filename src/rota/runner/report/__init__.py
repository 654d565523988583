"""The conversation with the manager: the connection, reports, orders, and the journal that survives a crash."""
