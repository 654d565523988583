"""Replaying traces of jobs through the planner on a virtual clock: deterministic, without a manager."""
