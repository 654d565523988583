"""The directory of a deployment: whose it is, who holds it, backup, restore, and its check-up."""
