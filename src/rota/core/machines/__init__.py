"""Hosts, nodes and runners: joining, heartbeats, proof of death, hours, health, energy and use.

Which job runs on which host belongs to `plan`; the jobs of a runner belong to `core.attempts`.
"""
