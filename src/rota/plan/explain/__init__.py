"""Why a job waits, and what if: questions about a plan, answered with copies of it.

It imports `plan.planner` and below. Nothing here changes the active plan.
"""
