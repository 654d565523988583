"""The command line.

It may import every other package; nothing imports it. Modules are loaded only when their command runs, which keeps
the start short.
"""
