"""The manager: one process, one loop, decide → commit → act."""
