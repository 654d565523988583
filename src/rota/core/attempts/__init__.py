"""Attempts: leases, seats, parts on further hosts, suspension, walltimes, signals and ends.

This is the manager's side of an execution. Processes belong to `runner`; when a job may start belongs to `plan`.
"""
