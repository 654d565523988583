"""The HTTP API and the dashboard: a gateway between browsers or scripts and the manager."""
