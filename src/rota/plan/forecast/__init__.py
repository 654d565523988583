"""When jobs begin and end if they run as long as such jobs usually do.

Pure arithmetic over snapshots, safe in any thread. The engine's part of it is `core.forecast`.
"""
