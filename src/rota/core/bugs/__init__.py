"""Bugs that the engine meets: what is remembered of them, and what is not decided any more because of them.

Here: the ledger and its rules, what makes two events the same, quarantine. Not here: starting anew
(`manager.loop.reexecution`).
"""
