"""Ledgers and batches of populate tables, inside the interpreter of a table.

It needs the standard library (Python 3.9 or later) and what the tables need, never Rota. Workers call
`batch.run`, and `desk` answers the manager. Nothing here decides which keys run.
"""
