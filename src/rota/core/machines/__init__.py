"""Hosts, nodes and runners: who is connected, what they have, their hours, health, energy and use."""
