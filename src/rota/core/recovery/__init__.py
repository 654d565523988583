"""Rebuilds the world from a store's snapshot: `recover` is the assembly, the other modules are its steps.

A part that must survive a restart adds one function to the order in `recover`. Nothing here reads a store.
"""
