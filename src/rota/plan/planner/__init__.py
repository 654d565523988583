"""The Gantt planner: which job has which resources from when to when.

It keeps a plan and changes what an event touches: backfilling, reservations, besteffort jobs, suspension, sleeping
hosts. It has no clock. Leases, runners and the engine never appear here; `plan.dispatch` carries a plan out.
"""
