"""Clients that follow: ends of jobs, live output, and the feed of everything that changes."""
