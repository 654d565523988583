"""How a site shares its resources: queues and their order, fair share, quotas, limits and admission rules.

Policies decide whether jobs may start and in which order. Where and when is decided by `plan.planner` and
`plan.packing`, which import this package.
"""
