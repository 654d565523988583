"""Processes on the manager's own host: hooks of the site, power commands, the gateway, requests to pools.

Runs them off the event loop and reports how they ended as events. What an end means is decided in `core`.
"""
