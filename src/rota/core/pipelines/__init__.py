"""Pipelines: elements with dependencies flow through an ordered list of stages; each piece of work is a job.

The definition and what follows from it alone (order, depth, keys, commands) are pure data.
Files are read elsewhere.
"""
