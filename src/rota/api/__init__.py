"""The HTTP gateway: it serves the API and the dashboard, and forwards requests to the manager.

It may import `client`, `wire` and the pure packages. It decides nothing: rights and state belong to the manager.
"""
