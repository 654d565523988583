"""A start as it is sent to a launcher process."""

from __future__ import annotations

from rota.launcher import messages as m
from rota.launcher.base import Captured, Discarded, IntoFile, OnTerminal, Piped, StartOrder, Stdio
from rota.launcher.client.spooled import SpoolReader


def start_message(order: StartOrder, serial: int, *, plain: bool = False) -> m.Start:
    """The message of this order, whose pipes are of that launcher. `plain`: of `start_shell`."""
    path, argv = order.words
    variables = order.variables
    return m.Start(
        order.key,
        order.kind,
        path,
        argv,
        variables.entries(),
        variables.path,
        order.cwd,
        _on_wire(order.stdio),
        list(order.cgroups),
        list(order.cores),
        serial,
        plain,
        order.file,
    )


def _on_wire(stdio: Stdio) -> m.WireStdio:
    match stdio:
        case Captured(pipes, out, err):
            assert isinstance(pipes, SpoolReader)
            return m.ToPipes(pipes.pipes.number, out, err)
        case OnTerminal(rows, cols):
            return m.ToTerminal(rows, cols)
        case Piped():
            return m.ToAgent()
        case IntoFile(directory):
            return m.ToFile(directory)
        case Discarded():
            return m.ToNothing()
