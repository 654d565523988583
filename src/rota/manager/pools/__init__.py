"""Carries out the decisions of `core.pools`: calls the engines of delegated pools, off the event loop."""
