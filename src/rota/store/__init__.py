"""Durable state: the `Store` contract, and its adapters for SQLite and memory.

It may import `core` and below. Decisions never belong here: a store writes the rows that it is given.
"""
