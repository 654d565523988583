"""What a site has: its records, its resources in their hierarchy, and the hours in which hosts may be used.

Imports `plan.language` and `plan.size` only. Nothing here knows about jobs that wait.
"""
