"""Commands that stay connected: submit jobs, wait for them, pass their output on, join a terminal with one.

Shared by `run`, `add`, `wait`, `exec`, `rsh`, `status --watch` and `top`. Options are read in `rota.cli.input`;
how answers look is decided in `rota.cli.render`.
"""
