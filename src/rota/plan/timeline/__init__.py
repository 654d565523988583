"""Data structures over time: free resources, step functions, holes where a job might fit, and shapes of requests.

Imports `plan.site` and below. Policies and the states of jobs do not belong here.
"""
