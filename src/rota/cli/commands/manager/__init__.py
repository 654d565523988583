"""Commands about the deployment itself: the manager, its configuration, its health, simulations."""
