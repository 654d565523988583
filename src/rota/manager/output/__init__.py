"""The output of ended attempts on the manager's host: segments, copies from nodes, reading and pruning."""
