"""The runner's side of a launcher process: starts it, talks to it, survives its death."""
