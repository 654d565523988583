"""The reference pages `docs/cli.md` and `docs/configuration.md`, made from the definitions.

`python -m rota.cli.reference` writes them; a test fails when they are not current.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from rota.cli.main import rota
from rota.config import Setting, all_settings
from rota.core.fields.field import JobField
from rota.core.fields.table import FIELDS
from rota.plan.policy.policy import DEFAULT_QUEUES

_NOTE = "<!-- Made by `python -m rota.cli.reference`; change the definitions, not this page. -->"


def pages() -> dict[str, str]:
    """Name → text of each page."""
    return {"cli.md": cli_page(), "configuration.md": configuration_page()}


# ------------------------------------------------------------------ commands


def cli_page() -> str:
    """Every command with its options."""
    parts = [
        "# Command line",
        _NOTE,
        _plain(rota.help or ""),
        "## Options of every command",
        "They may stand before or after the subcommand.",
        _options(rota),
    ]
    for path, command in commands():
        parts += [f"## `{path}`", _plain(command.help or "")]
        if not isinstance(command, click.Group):
            context = click.Context(command, info_name=path)
            usage = " ".join(command.collect_usage_pieces(context))
            parts.append(f"```\n{path} {usage}\n```")
            if options := _options(command, without=_names(rota)):
                parts.append(options)
    return "\n\n".join(part for part in [*parts, _input(), _STATUSES] if part) + "\n"


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command and subcommand, in the order of the help."""

    def walk(path: str, group: click.Group) -> Iterator[tuple[str, click.Command]]:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield f"{path} {name}", command
            if isinstance(command, click.Group):
                yield from walk(f"{path} {name}", command)

    yield from walk("rota", rota)


def _names(command: click.Command) -> set[str | None]:
    return {parameter.name for parameter in command.params}


def _options(command: click.Command, *, without: set[str | None] = frozenset()) -> str:  # type: ignore[assignment]
    rows = []
    for option in command.params:
        if not isinstance(option, click.Option) or option.hidden or option.name in without:
            continue
        names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
        value = "" if option.is_flag else f" {option.make_metavar(click.Context(command))}"
        text = (option.help or "").replace("|", "\\|")
        if option.show_default and option.default is not None:
            text += f" Default: {option.default}."
        rows.append(f"| {names}{value.replace('|', chr(92) + '|')} | {text} |")
    return "\n".join(["| option | meaning |", "|---|---|", *rows]) if rows else ""


def _plain(text: str) -> str:
    """A help text as Markdown: what follows a backspace is an example, kept as it is."""
    parts = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            title, _, body = paragraph.removeprefix("\b\n").partition("\n")
            parts.append(f"{title}\n\n```sh\n{inspect.cleandoc(body)}\n```")
        else:
            parts.append(paragraph)
    return "\n\n".join(parts)


_INPUT = """\
## Input

`rota add` and `rota run` read a file, or stdin, in one of these forms:

- one command a line, run by `/bin/sh -c`;
- one JSON object a line, with the fields below;
- a command, a tab and a JSON object with further fields;
- one JSON array of objects.

Blank lines and lines that begin with `#` are skipped (not inside an array). Lines may end with CR LF;
a byte order mark is ignored. NUL bytes and text that is not UTF-8 are refused, as are lines of more than
1 MiB and commands of more than 131,071 bytes, which is the longest that Linux lets `sh -c` have. A line
that begins with `{` is an object, unless a blank and then something other than `"` or `}` follows: that is
a shell's group of commands. An input with a bad line adds nothing and names the line and the field.

| field | value |
|---|---|
| `cmd` | text for the shell, or a list of texts that is executed directly |
FIELDS

Flags give the defaults of lines that do not say. A line's `env` is added to that of the flags; its `after`, `dep_groups`,
`limits` and `on_…` replace them, and `[]` means none. `null` or `"none"` takes back OPTIONAL;
`null` or `"default"` takes back `retry_on`.

A number without a unit is refused where a time or a size is meant.
"""  # noqa: E501


def _input() -> str:
    optional = [name for name, field in FIELDS.items() if field.kind.none and "null" not in _doc(field)]
    text = _INPUT.replace("FIELDS\n", _fields()).replace("OPTIONAL", _listed(optional))
    return text.replace("QUEUES", _listed(DEFAULT_QUEUES))


def _fields() -> str:
    """The rows of all fields; those with values of the same kind share one."""
    names: dict[str, list[str]] = {}
    for name, field in FIELDS.items():
        names.setdefault(_doc(field), []).append(f"`{name}`")
    return "".join(f"| {', '.join(alike)} | {doc} |\n" for doc, alike in names.items())


def _doc(field: JobField) -> str:
    return field.doc or field.kind.doc


def _listed(names: Iterable[str]) -> str:
    words = [f"`{name}`" for name in names]
    return f"{', '.join(words[:-1])} and {words[-1]}"


_STATUSES = """\
## Exit status

| status | meaning |
|---|---|
| 0 | done |
| 1 | a job failed (`run`, `wait`, `add --sync`; of a single job its own exit code, or 128 + signal) |
| 2 | usage or bad input |
| 3 | no such job |
| 4 | no manager, or it cannot be reached |
| 5 | denied |
| 6 | timed out |
| 130 | interrupted |

Errors are one line on stderr: `rota: what is wrong; what to do`. With `--json` the error is the object
`{"error": {"code", "message", "hint", "field", "line", "entry"}}`, on stdout, where the result would have been,
and again on stderr if that is another file; the last three are null where there is none."""


# ------------------------------------------------------------------ settings


def configuration_page() -> str:
    """Every setting."""
    parts = [
        "# Configuration",
        _NOTE,
        "Settings are read from `$ROTA_HOME/rota.toml`, `~/.config/rota/rota.toml` (or\n"
        "`$XDG_CONFIG_HOME/rota/rota.toml`) and `/etc/rota/rota.toml`, from `ROTA_*` variables and from flags.\n"
        "The nearest wins: a flag, then a variable, then the files in this order. `rota config show` prints\n"
        "every value and where it comes from; `rota config check` checks them. An unknown setting is an error.",
        "Times and sizes are texts with a unit, as on the command line.",
        '```toml\n# rota.toml\nidle_stop = "10m"\nkeep_output = "4M"\ncores = 8\n```',
    ]
    rows = [_setting_row(setting) for setting in all_settings().values()]
    parts.append("\n".join(["| setting | variable | default | meaning |", "|---|---|---|---|", *rows]))
    parts.append(_VARIABLES)
    return "\n\n".join(parts) + "\n"


def _setting_row(setting: Setting) -> str:
    doc = setting.doc.replace("|", "\\|")
    return f"| `{setting.name}` | `{setting.variable}` | `{setting.show(setting.default)}` | {doc} |"


_VARIABLES = """\
## Other variables

| variable | meaning |
|---|---|
| `ROTA_HOME` | the deployment's directory; default `$XDG_STATE_HOME/rota`, else `~/.local/state/rota` |
| `ROTA_MANAGER` | `HOST:PORT` of a manager to reach by TLS instead of the one in `ROTA_HOME` |
| `ROTA_TOKEN_FILE` | file with the token for that; default `$ROTA_HOME/tokens/admin.token` |
| `ROTA_CA` | the deployment's certificate authority; default `$ROTA_HOME/tls/ca.pem` |
| `NO_COLOR` | if set, no colours |"""


def main() -> int:
    """Write the pages into a directory (default: `docs`)."""
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (directory / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
