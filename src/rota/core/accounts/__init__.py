"""Accounts: what was asked for, given and used, by hour, user, project and queue."""
