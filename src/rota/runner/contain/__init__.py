"""Which processes belong to a job, and how they are confined, frozen, killed and counted.

Control groups where the host has them, else sessions, ancestry and affinity. Nothing here starts a command or
decides that a job must end.
"""
