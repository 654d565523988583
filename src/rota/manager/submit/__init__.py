"""From what a client submits to events: checks, admission rules, and what the store knows already."""
