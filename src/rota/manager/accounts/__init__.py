"""Accounting and usage over windows of time, computed from the sums in the store.

Read-only, and called on worker threads. What is summed up and when is decided in `core.accounts`.
"""
