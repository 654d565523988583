"""The Gantt planner: which job has which resources from when to when.

`plan.py` is the data. Above it, in layers that import one way: the search for a place (`search`), backfilling and
besteffort jobs, ranks and passes, then what can happen (submission, start, end, overrun, suspension, changes of
the site). `planner.py` is the interface. Imports only `plan.policy`, `plan.timeline`, `plan.site` and below. It has no
clock, and leases, runners and the engine never belong here: `plan.dispatch` carries a plan out.
"""
