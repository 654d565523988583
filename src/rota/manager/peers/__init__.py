"""Connections: accepting them, who is at the other end, what it may do, and the dispatch of its messages."""
