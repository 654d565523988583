"""The reference pages `docs/cli.md` and `docs/configuration.md`, made from the definitions.

`python -m rota.cli.reference` writes them; a test fails when they are not current.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from rota.cli.main import rota
from rota.config import Setting, all_settings
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
| `cwd`, `name`, `group`, `project` | text |
| `queue` | name of a queue, as `rota queue list` shows them; QUEUES are always there |
| `request` | text, or list of alternatives: `"nodes=2/core=4,walltime=1h"`; see [requests](requests.md). null or `"none"`: none |
| `where` | text: a condition on the properties of resources, `"gpu = 'YES' and mem_gb >= 64"`; null or `"none"`: any |
| `type` | list, or text with commas, of job types: `"besteffort"`, `"container"`, `"inner=12"` … |
| `at` | time of a reservation: `"2026-11-16T08:00"` (local, or with a zone), `"now+10m"`, `"@1700000000"`; null or `"none"`: none |
| `env` | object of texts, added to the captured environment |
| `cpus` | number, 0 or more, in steps of 0.01 |
| `mem`, `disk` | size: `"500M"`, `"4G"`, `"1.5T"` (powers of 1024) |
| `time`, `walltime`, `backoff`, `no_retry_over`, `checkpoint` | time: `"90s"`, `"2m"`, `"1h30m"`, `"2d"`, `"12:00:00"`, `"1-12:00:00"` |
| `gpus`, `priority`, `retries` | whole number; `priority` from 0 to 255 |
| `scratch`, `pipefail`, `live`, `allow_empty_group`, `rerun`, `once`, `allow_unsatisfiable` | true or false |
| `after` | list, or text with commas, of `12`, `12-15`, `@group` (a dependency group), `afterok:12`, `afterany:@group`, `afternotok:12`, and `line:3`: the job, or all jobs of the array, of line 3 of the same input (in a JSON array: its third entry), which may also stand behind a condition; in a list also `{"cmd": "make data", "cwd": "/d"}`: the job of yours with this command in this directory, without `cwd` in one of its own |
| `dep_groups` | list, or text with commas, of the groups that others may wait for |
| `array` | text: `"1-100%5"`, `"0-99:2"`, `"1,3,7-9"`; at most 1,000,000 elements, each index once; `%5`: at most five run at once; null: no array |
| `array_file` | path of a file with the parameters of one job on each line, without blank lines and lines that begin with `#`; the index counts the jobs from 1; a relative path begins where the submission is made. The line is appended to a text command after a blank, to a list as arguments, split as a shell does. With `array`, only the lines with these indexes; `"%5"` alone means all lines |
| `limits` | list, or text with commas, of `name`, `name:2`, `name:any` (one unit, of a limit without a capacity if nobody has declared it), and `name!` for exclusive use; `name:N` with N up to 1,000,000 |
| `learn`, `override` | text; `no`, `higher` or `always` |
| `input_bytes` | size, or a whole number of bytes |
| `input_file` | path of a file, from the job's directory, whose size is that of the input |
| `job_key` | path of a file with the key of jobs, which is made if it is not there; a relative path begins where the submission is made; null: none |
| `retry_on` | list, or text with commas, of `exit`, `signal`, `memory`, `time`, `walltime`, `disk`, `lost`, `not_found`, `output_file`: the reasons after which an attempt is retried; null: all but `walltime`, where another attempt can help; `[]`: none |
| `on_success`, `on_failure`, `on_exit` | list of `"run: CMD"`, `"cleanup"`, `"remove"`, or of `{"run": "CMD"}`, `{"cleanup": true}`, `{"remove": true}`; `cleanup` needs `scratch` |
| `signal` | name of a signal, such as `"USR1"` |
| `stdout`, `stderr` | name of a file, from the job's directory, with `%j` id, `%A` array, `%a` index, `%x` name, `%u` user, `%N` host, `%%` percent sign |

Flags give the defaults of lines that do not say. A line's `env` is added to that of the flags; its `after`, `dep_groups`,
`limits` and `on_…` replace them, and `[]` means none. `null` or `"none"` takes back `walltime`, `no_retry_over` and `checkpoint`;
`null` or `"default"` takes back `retry_on`.

A number without a unit is refused where a time or a size is meant.
"""  # noqa: E501


def _input() -> str:
    names = [f"`{name}`" for name in DEFAULT_QUEUES]
    return _INPUT.replace("QUEUES", f"{', '.join(names[:-1])} and {names[-1]}")


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
`{"error": {"code", "message", "hint"}}`, on stdout, where the result would have been, and again on stderr
if that is another file."""


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
