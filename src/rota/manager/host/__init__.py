"""Processes that the manager starts on its own host: scripts of the site, power commands, the gateway, pools."""
