"""The launchers of a runner, seen from the runner."""
