"""Errors for people and programs: one line on stderr, or one JSON object, and an exit status."""

from __future__ import annotations

import os
import sys

import click

from rota.errors import Bug, EnvironmentFault, RotaError, UserError


def explain(error: Exception) -> RotaError:
    """Convert any error to a `RotaError`."""
    if isinstance(error, RotaError):
        return error
    if isinstance(error, click.NoSuchOption):
        close = [f"'{name}'" for name in error.possibilities or ()]  # the closest comes first
        meant = " or ".join(filter(None, [", ".join(close[:-1]), *close[-1:]]))
        hint = f"did you mean {meant}?" if meant else _see_help(error)
        return UserError(f"no such option '{error.option_name}'", hint=hint)
    if isinstance(error, click.MissingParameter) and error.param and isinstance(error.param.type, click.Choice):
        choices = ", ".join(map(str, error.param.type.choices))
        name = error.param.human_readable_name
        return UserError(f"missing {error.param.param_type_name} {name}", hint=f"give one of {choices}")
    if isinstance(error, click.UsageError):
        message = error.format_message().rstrip(".")
        return UserError(message[:1].lower() + message[1:], hint=_see_help(error))
    if isinstance(error, click.ClickException):
        return UserError(error.format_message())
    if isinstance(error, OSError) and error.strerror:
        where = f" ({error.filename})" if error.filename else ""
        return EnvironmentFault(f"{error.strerror.lower()}{where}", hint="see 'rota doctor'")
    if isinstance(error, MemoryError):
        return EnvironmentFault("not enough memory", hint="give fewer jobs at once")
    return Bug(f"a bug: {type(error).__name__}: {error}", hint="run it again with --debug and report it")


def _see_help(error: click.UsageError) -> str:
    return f"see '{error.ctx.command_path if error.ctx else 'rota'} --help'"


def report(error: RotaError, *, as_json: bool) -> int:
    """Print the error; returns its exit status."""
    from rota.cli.render.printing import print_out
    from rota.cli.render.text import harmless

    if as_json:
        import json

        body = {
            "code": error.code,
            "message": harmless(error.message),
            "hint": harmless(error.hint),
            "field": harmless(error.field) or None,
            "line": error.line or None,
            "entry": error.entry or None,
        }
        line = json.dumps({"error": body})
        # Programs that parse stdout need one JSON value there; stderr is where errors are looked for.
        try:
            print_out(line)
        except OSError:
            pass  # stdout has no reader
        if not _same_file():
            _to_stderr(line)
    else:
        _to_stderr(f"rota: {error}")
    return error.exit_status


def _to_stderr(line: str) -> None:
    from rota.cli.render.printing import print_err

    try:
        print_err(line)
        sys.stderr.flush()
    except OSError:
        pass  # stderr has no reader


def _same_file() -> bool:
    try:
        return os.path.samestat(os.fstat(1), os.fstat(2))
    except OSError:
        return False
