"""How a site shares its resources: queues and their order, fair share, quotas, limits, the calendar, admission
rules.

Rules and the arithmetic behind them. They decide whether and in which order; where a job goes is `plan.planner`'s
or `plan.packing`'s business.
"""
