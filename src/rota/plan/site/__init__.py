"""What a site has: its records, its resources in their hierarchy, its clock and calendar, and the hours of hosts.

Imports `plan.language` and `plan.size` only. Jobs do not belong here.
"""
