"""Submissions: chunks arrive, entries are matched with known jobs, and the last chunk makes all of it visible.

Anything that happens to a job after it was submitted belongs to `core.jobs` or `core.attempts`.
"""
