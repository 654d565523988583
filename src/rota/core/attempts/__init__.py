"""Attempts: leases, seats, the parts of a job on several hosts, suspension, walltimes, signals and the end.

The manager's side of a running command. Processes are the runner's business.
"""
