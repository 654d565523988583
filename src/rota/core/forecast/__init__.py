"""Forecasts: expected starts and ends, the same for every command, page and program.

Computed from a snapshot, in any thread. Decides nothing: plans are made in `plan`.
"""
