"""The plan as data: which job holds which resources from when to when, and what is known of each job.

It keeps the books and decides nothing; `plan.planner` does. It imports `plan.policy`, `plan.timeline`, `plan.site`
and what is below them.
"""
