"""The manager's process: start-up, recovery, the loop (decide, commit, act), its clock and its writer thread."""
