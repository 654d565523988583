"""Rebuilds the world from a store's snapshot: `recover` is the assembly, the other modules are its steps.

Features restore themselves (`core.feature`), at their place in the order of `recover`. Nothing here reads a store.
"""
