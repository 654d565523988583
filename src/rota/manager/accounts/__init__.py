"""Accounting and usage over windows of time, made of the sums in the store."""
