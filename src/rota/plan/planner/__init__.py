"""The Gantt planner: which job has which resources from when to when.

`plan.py` is the data. Above it, in layers that import one way: the search for a place, backfilling and besteffort
jobs, ranks and passes, then everything that can happen to a job or the site. `planner.py` is the interface.

It imports only `plan.policy`, `plan.timeline`, `plan.site` and what is below them. It has no clock. Leases,
runners and the engine never belong here; `plan.dispatch` carries a plan out.
"""
