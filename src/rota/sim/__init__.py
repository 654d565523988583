"""Simulation: runs traces of jobs through the planner on a virtual clock. Deterministic, without a manager.

Imports `plan`, and `pictures` for drawings. Nothing here reads files; callers pass bytes.
"""
