"""Streams to clients: ends of watched jobs, live output, and the feed of everything that changes."""
