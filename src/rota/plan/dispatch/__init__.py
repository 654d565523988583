"""Dispatch: from a plan to leases. Which jobs are due, what each gets, and when packing gives way to a plan.

`Planning` is the placement that the engine sees (`plan.placement`). This is the top of `plan` and may import all
of it. Decisions about places do not belong here; they are in `plan.planner` and `plan.packing`.
"""
