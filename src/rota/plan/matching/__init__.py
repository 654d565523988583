"""Exact bipartite matching: seats (what members of a gang ask for) to machines, both plain numbers and bit sets.

Whether all seats can be filled (Hopcroft-Karp), the best way to do it, and if there is none, which seats compete
for too few machines (a Hall violator). It knows nothing of jobs, hosts or time.
"""
