"""From a running command to a recorded end: walltimes, kills, memory pressure, reaping, behaviours, the verdict.

Also settles the jobs of runners that died. Nothing here talks to the manager.
"""
