"""Processes that enter a running job: `rota exec`, terminals, and `rota-rsh` between its nodes."""
