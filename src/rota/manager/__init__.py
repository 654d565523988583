"""The manager: one process with one event loop that decides, commits and acts, in this order.

`core` decides and `store` commits. This package connects them with clients, runners and the manager's host. It may
import everything but `client`, `cli` and `api`; `loop.service` wires its components together.
"""
