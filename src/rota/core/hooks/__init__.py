"""Scripts of the site on the manager's host, before and after a job: when they run and what follows from their
end.

Executing them is the business of `manager.host`.
"""
