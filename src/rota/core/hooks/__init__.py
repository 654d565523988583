"""Scripts of the site that run on the manager's host before and after a job: what is decided about them.

They are executed by `manager.host`.
"""
