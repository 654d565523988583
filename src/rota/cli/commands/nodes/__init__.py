"""Commands about nodes: list, add, drain, and be one."""
