"""The site in the engine: its records, limits, policy, the manager's pause, and the planner's view of jobs.

How plans are made belongs to `plan`.
"""
