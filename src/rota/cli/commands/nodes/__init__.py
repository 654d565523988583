"""Commands about nodes: list, add and drain them, and run the agent of one."""
