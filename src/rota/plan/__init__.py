"""The pure planner: what jobs ask for, what a site has, its policies, and which job runs where and when.

From the bottom up: `language`, `site`, `timeline`, `policy`, then `packing` and `planner`, then `explain` and
`forecast`, then `dispatch`, which answers the engine through the port `placement`. Contracts keep that order.
Nothing here does I/O or reads a clock; time is an argument.
"""
