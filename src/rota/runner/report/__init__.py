"""The conversation with the manager: connection, reports, orders, leaving, and the journal that survives a crash.

Orders are handed on; how a job is started or ended is not decided here.
"""
