"""The process that runs jobs on a host, started as ``python -m rota.runner``: one thread, one loop.

It outlives the manager: jobs keep running while no manager is connected. It imports only msgspec, the standard
library and what the manager shares with it (`wire`, `core`, `plan.size`), so that it starts fast.

Scheduling never belongs here: the manager decides what runs, the runner starts it and reports how it ended.
`agent.py` makes all components and wires them; `task.py` and `task_table.py` hold the state that they share.
"""
