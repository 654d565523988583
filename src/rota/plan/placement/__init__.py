"""The interface between the engine and whoever decides which job runs where, in four parts.

The engine tells the `queue` what waits and the `hosts` what room there is and what ended; `decisions` answer with
jobs to begin, and the `explanation` says why others wait. `plan.packing.packing` decides about now and is fast;
`plan.dispatch.planning` uses it until somebody asks for more than that, and the planner from then on.
"""
