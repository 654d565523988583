"""Jobs: their data, dependencies and groups, the actions of users on them, and why one does not run.

What happens while a job executes belongs to `core.attempts`; how one is submitted, to `core.submit`.
"""
