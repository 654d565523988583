"""What runs in the interpreters of tables, which have this directory on their `PYTHONPATH`."""
