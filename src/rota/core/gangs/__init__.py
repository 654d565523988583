"""Gangs: jobs of one submission that begin together, or not at all.

A member is an ordinary job. What is added here: a gang is offered to the placement as one, its leases are sent
when all members are prepared, and what becomes of the others when one ends (`lifecycle` is the registration).
"""
