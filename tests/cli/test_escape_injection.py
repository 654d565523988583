"""Nothing that a job, an agent, another user or a manager says can control the terminal of whoever looks at it.

Hostile text is in every field of everything that a manager can answer; each command shows it, on a terminal and
in a pipe. Commands can print only through `rota.cli.render.printing`, which escapes everything but `SafeText`.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import io
import json
import re
import sys
import unicodedata
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

import rota.cli
from rota.cli import main
from rota.cli.command import Invocation
from rota.cli.render.errors import report
from rota.cli.render.text import SafeText, block, harmless, json_text, paint, unsafe
from rota.cli.screen import details, rows, summary
from rota.client.blocking import Client
from rota.client.printed import Printed
from rota.errors import BadInput
from rota.wire.views import JobView, StatusView
from tests.cli.hostile import Hostile, HostileClient, hints_of
from tests.dose import dose

_CLI = Path(rota.cli.__path__[0])

#: Colours and ways to draw a line again that are our own; no hostile text below has these.
_OURS = re.compile(r"\x1b\[(?:[0-467]|3[0-7]|4[0-7]|38;5;16;48;5;\d+|30;4\d)m|\r\x1b\[K")
_NASTY = (
    "\x1b[5m",
    "\x1b]0;title\x07",
    "\x9b5m",
    "\r",
    "\n",
    "\x08",
    "\u202e",
    "\u2028",
    "\u200b",
    "\x7f",
    "\x85",
    "[b]",
)

#: Every command that shows what a manager says, and how it ends whatever that is. None: it may refuse some of it.
_COMMANDS = {
    "show 1": 0,
    "why 1": 0,
    "plan": 0,
    "jobs": 0,
    "status": 0,
    "limit": 0,
    "learn": 0,
    "learn x": 0,
    "accounting": 0,
    "usage": 0,
    "node list": 0,
    "node show n1": 0,
    "manager status": 0,
    "manager token list": 0,
    "manager token add x": 0,
    "manager ui --no-open": 0,
    "manager pause": 0,
    "gantt": 0,
    "kill 1": 3,
    "remove 1": None,
    "confirm-dead 1": 3,
    "walltime 1 +1h": 0,
    "queue list": None,
    "quota list": None,
    "calendar list": None,
    "rule list": 0,
    "property list": 0,
    "resource list": 0,
    "resource list --each": 0,
    "node remove x": None,
    "manager token remove x": 0,
    "pipeline list": 0,
    "pipeline show": 0,
    "pipeline show x": 0,
    "pipeline retry x": 0,
}


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _shown(
    arguments: list[str], text: str, *, states: bool = False, terminal: bool = False
) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a command to which everything is answered with this text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Invocation, "connect", lambda _call: HostileClient(Hostile(text, states=states)))
        out, err = (_Terminal(), _Terminal()) if terminal else (io.StringIO(), io.StringIO())
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.setenv("TERM", "xterm-256color")
        patch.delenv("NO_COLOR", raising=False)
        patch.setenv("COLUMNS", "300")
        patch.setenv("ROTA_HOME", "/nonexistent/rota")
        status = main._status(arguments)
    return status, out.getvalue(), err.getvalue()


def _harmful(text: str) -> str:
    """What is left in a text that a terminal would obey, but for its lines."""
    return "".join(unsafe().findall(_OURS.sub("", text).replace("\n", "")))


_hostile = st.one_of(
    st.sampled_from([f"a{nasty}b" for nasty in _NASTY]),
    st.lists(st.sampled_from([*_NASTY, "x", "ä"]), min_size=1, max_size=6).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12),
)


def test_every_answer_of_a_client_has_a_type_that_can_be_made_hostile() -> None:
    methods = {name: each for name, each in inspect.getmembers(Client, inspect.isfunction) if name[0] != "_"}
    lazy = [name for name, each in methods.items() if hints_of(each)["return"] is Printed]
    assert lazy, "imported for the type checker alone"


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("command", ["show 1", "why 1", "plan"])
def test_a_reason_code_does_not_reach_the_terminal(command: str, terminal: bool) -> None:
    status, out, _ = _shown(command.split(), "x\x1b[5m\x1b]0;owned\x07\n", terminal=terminal)
    assert status == 0
    assert _harmful(out) == ""
    assert "x\\e[5m\\e]0;owned" in out


@pytest.mark.parametrize("command", _COMMANDS)
@dose(8)
@given(text=_hostile, states=st.booleans(), terminal=st.booleans(), quiet=st.booleans())
def test_no_command_lets_hostile_text_through(
    command: str, text: str, states: bool, terminal: bool, quiet: bool
) -> None:
    words = [*command.split(), *(["--quiet"] if quiet else [])]
    status, out, err = _shown(words, text, states=states, terminal=terminal)
    tabs = "\t" if command == "accounting" else ""  # between its columns
    assert _harmful(out).strip(tabs) == ""
    assert _harmful(err) == ""
    assert _COMMANDS[command] in (None, status), err


@pytest.mark.parametrize("command", [command for command, status in _COMMANDS.items() if status is not None])
@dose(4)
@given(text=_hostile, terminal=st.booleans())
def test_json_stays_json_and_has_no_control_characters(command: str, text: str, terminal: bool) -> None:
    status, out, err = _shown([*command.split(), "--json"], text, terminal=terminal)
    assert status == _COMMANDS[command], err
    json.loads(out)
    assert unsafe().findall(out.removesuffix("\n")) == []


@given(st.recursive(st.text() | st.integers(0, 9), st.lists))
def test_json_means_the_same_with_its_escapes(value: object) -> None:
    assert json.loads(json_text(value)) == value
    assert not unsafe().search(json_text(value))


@dose(10)
@given(text=_hostile, as_json=st.booleans())
def test_an_error_that_a_manager_sends_is_one_harmless_line(text: str, as_json: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        out, err = io.StringIO(), io.StringIO()
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        report(BadInput(text, hint=text, code=text), as_json=as_json)
    assert unsafe().findall((out.getvalue() + err.getvalue()).replace("\n", "")) == []
    assert (out.getvalue() + err.getvalue()).count("\n") in (1, 2)


@dose(25)
@given(text=_hostile)
def test_rows_and_details_of_top_are_harmless(text: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    made = Hostile(text, states=True)
    job, status = made.of(JobView), made.of(StatusView)
    shown = Console(file=io.StringIO(), width=200, color_system=None)
    for tab in rows.TABS:
        if tab.row is not None:
            for cell in tab.row(job, now):
                shown.print(cell)
    shown.print(rows.group_row(text, msgspec.structs.replace(status, groups={text: {"running": 1}}), now)[0])
    shown.print(details.facts(job, now))
    shown.print(summary.summary(status, now, room=120))
    assert _harmful(shown.file.getvalue()) == ""  # type: ignore[attr-defined]


def test_what_a_widget_shows_of_top_cannot_control_the_terminal() -> None:
    from rich.segment import Segment
    from textual.color import Color

    from rota.cli.screen.line_filter import HarmlessLines

    lines = HarmlessLines().apply([Segment("a\x1b]0;x\x07b\u202e[bold]c")], Color(0, 0, 0))
    assert [text for text, _, _ in lines] == ["a]0;xb[bold]c"]


def test_top_draws_nothing_that_a_terminal_would_obey() -> None:
    from textual.geometry import Region
    from textual.widgets import Static

    from rota.cli.screen.app import TopApp

    client: Any = HostileClient(Hostile("x\x1b]0;owned\x07\u202e[@click=app.quit]y[/]", states=False))

    async def drawn() -> str:
        app = TopApp(lambda: client, client)
        async with app.run_test(size=(120, 40)) as pilot:
            forgotten = Static(Text("forgotten\x1b[5m\u202e"), markup=False)
            await app.mount(forgotten, before=0)
            await pilot.pause()
            assert not unsafe().search(str(forgotten.render_lines(Region(0, 0, 40, 1))[0].text))
            shown = app.export_screenshot()
            await pilot.press("enter")
            await pilot.pause()
            return shown + app.export_screenshot()

    picture = asyncio.run(drawn())
    assert "owned" in picture
    assert "@click" in picture  # as it was written, and nothing to click on
    assert unsafe().findall(picture.replace("\n", "")) == []


def test_every_control_and_format_character_is_unsafe() -> None:
    of_these = ("Cc", "Cf", "Zl", "Zp", "Cs")
    missed = [
        hex(n) for n in range(0x110000) if unicodedata.category(chr(n)) in of_these and not unsafe().match(chr(n))
    ]
    assert missed == []


def test_text_is_shown_as_it_is_only_if_nothing_was_added_unescaped() -> None:
    bold = paint("a", "bold", on=True)
    assert bold == "\x1b[1ma\x1b[0m"
    assert isinstance(bold + "\x1b", SafeText)
    assert bold + "\x1b" == "\x1b[1ma\x1b[0m\\e"
    assert "\n" + bold == "\\n\x1b[1ma\x1b[0m"
    assert not isinstance(f"{bold}\x1b", SafeText)
    assert harmless(f"{bold}") == "\\e[1ma\\e[0m"
    assert block(["a\nb", block(["c", "d"])]) == "a\\nb\nc\nd"


# ------------------------------------------------------------------ there is no other way to print

#: Where the output of jobs is passed on byte for byte.
_BYTES = {"job_output.py", "logs.py", "interactive.py", "pipeline_log.py", "run.py"}
_MAKE_SAFE_TEXT = {"text.py"}


def _called(node: ast.AST) -> str:
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


@pytest.mark.parametrize("path", sorted(_CLI.rglob("*.py")), ids=lambda path: str(path.relative_to(_CLI)))
def test_commands_print_through_the_one_printer(path: Path) -> None:
    wrong = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.expr):
            continue
        called, text = _called(node), ast.unparse(node)
        if path.name != "printing.py" and (
            called in ("print", "click.secho", "click.confirm", "click.prompt", "input", "traceback.print_exc")
            or (called == "click.echo" and "get_help()" not in text)
            or re.fullmatch(r"sys\.std(out|err)\.write(lines)?", called)
        ):
            wrong.append(
                f"line {node.lineno}: {called}: use print_out, print_err or confirmed of rota.cli.render.printing"
            )
        if re.fullmatch(r"sys\.std(out|err)\.buffer", text) and path.name not in _BYTES:
            wrong.append(f"line {node.lineno}: only the output of jobs is passed on as bytes")
        if called == "SafeText" and path.name not in _MAKE_SAFE_TEXT:
            wrong.append(f"line {node.lineno}: use harmless, block or paint of rota.cli.render.text")
        if called == "literal" and not re.fullmatch(r"literal\(('[^']*'|\"[^\"]*\")\)", text):
            wrong.append(f"line {node.lineno}: only a constant is a literal")
        if called == "Static" and "markup=False" not in text:
            wrong.append(f"line {node.lineno}: a Static reads markup unless it is told not to")
        if called.endswith(".notify") and "markup=False" not in text:
            wrong.append(f"line {node.lineno}: a notification reads markup unless it is told not to")
    assert wrong == []
