"""From a plan to leases: who is due, what an allocation looks like, and when packing gives way to a plan.

`Planning` is the placement that the engine sees (`plan.placement`).
"""
