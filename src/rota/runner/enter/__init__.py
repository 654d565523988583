"""Processes that enter a running job: `rota exec`, terminals, and `rota-rsh` between the nodes of a job.

The command of a job itself is started in `start`.
"""
