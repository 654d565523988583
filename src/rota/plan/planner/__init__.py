"""The Gantt planner: it decides which job has which resources from when to when.

The plan itself is `plan.schedule`. Here, in layers that import one way: the search for a place, backfilling and
besteffort jobs, ranks and passes, then everything that can happen to a job or the site. `planner.py` is the
interface.

It has no clock. Leases, runners and the engine never belong here; `plan.dispatch` carries a plan out.
"""
