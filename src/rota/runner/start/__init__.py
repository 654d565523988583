"""From a lease to a running command: seats, environment, cores, files, hooks, and the process itself."""
