"""Submissions: chunks arrive, entries are matched with existing jobs, and the last chunk makes everything visible.

What happens to a job later belongs to `core.jobs` or `core.attempts`.
"""
