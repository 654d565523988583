"""The manager of tables: one cycle after the other, its status, and the API that shows it."""
