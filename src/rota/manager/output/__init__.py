"""Output of ended attempts on the manager's host: reading segments, copies from nodes, pruning.

Live output is passed on by `watch`; the format of segments belongs to `store.segments`.
"""
