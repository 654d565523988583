"""The home directory of a deployment: identity, lock, backup, restore and integrity check."""
