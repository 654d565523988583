"""From a lease to a running command: seats, environment, cores, files, prologues, and the process itself."""
