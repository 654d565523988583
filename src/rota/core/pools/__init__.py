"""Runners of delegated pools: which were requested, which exist, and which to request or withdraw next."""
