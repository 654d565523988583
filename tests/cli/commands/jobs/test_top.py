"""`rota top` with real jobs: what is on the screen, and what the keys do."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rota.client import connect
from rota.errors import BadInput
from tests.deployment import ROTA, Deployment, wait_until

textual = pytest.importorskip("textual")

from textual.events import Key  # noqa: E402
from textual.pilot import Pilot  # noqa: E402
from textual.widgets import DataTable, Input, Log  # noqa: E402

from rota.cli.screen.app import TopApp  # noqa: E402
from rota.cli.screen.data_thread import next_refresh  # noqa: E402
from rota.cli.screen.details import Details  # noqa: E402
from rota.cli.screen.dialogs import Help, Question  # noqa: E402
from rota.cli.screen.job_output import Readable  # noqa: E402
from rota.cli.screen.row_filter import Filter, parse_filter  # noqa: E402
from rota.cli.screen.rows import TABS, widths  # noqa: E402

_KEYS = {"@": "at", " ": "space", "=": "equals_sign"}
_CHARACTERS = {key: character for character, key in _KEYS.items()} | {"slash": "/", "question_mark": "?"}
#: A key goes from the application to the screen, the widget in focus, and as a message back.
_HOPS = 4
_HOSTILE = "[bold red]x[/] \x1b[31mred"


class Eyes:
    """The screen as a user sees it, and the keys."""

    def __init__(self, app: TopApp, pilot: Pilot[None]) -> None:
        self.app = app
        self._pilot = pilot

    def text(self) -> str:
        lines = [
            "".join(segment.text for segment in strip)
            for strip in self.app.screen._compositor.render_strips(self.app.size)
        ]
        return "\n".join(line.rstrip() for line in lines)

    async def see(self, *words: str) -> str:
        def drawn() -> str:
            text = self.text()
            return text if all(word in text for word in words) else ""

        return str(await self.until(drawn, str(words)))

    async def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait for something that must happen; the bound only ends a hanging test."""
        deadline = time.monotonic() + 60
        while not (found := condition()):
            if time.monotonic() > deadline:
                pytest.fail(f"waited in vain for {what}:\n{self.text()}")
            await self._pilot.pause(0.05)
        return found

    async def press(self, *keys: str) -> None:
        """Press keys, each when the one before it was handled. What that leads to later must be waited for.

        `Pilot.press` waits until the process is idle, up to two seconds for each key.
        """
        for key in keys:
            self.app.post_message(Key(key, _CHARACTERS.get(key, key if len(key) == 1 else None)))
            for _ in range(_HOPS):
                await self._pilot.pause(0)

    async def type(self, text: str) -> None:
        for character in text:
            await self.press(_KEYS.get(character, character))


def look(
    rota: Deployment,
    story: Callable[[Eyes], Awaitable[None]],
    *,
    size: tuple[int, int] = (140, 30),
    filter: str = "",
) -> TopApp:
    """Run the application against a deployment."""
    here = partial(connect, rota.home)

    async def run() -> TopApp:
        with here() as client:
            app = TopApp(here, client, filter=filter)
            async with app.run_test(size=size, notifications=True) as pilot:
                await story(Eyes(app, pilot))
            return app

    return asyncio.run(run())


@pytest.fixture(scope="module")
def busy(shared: Deployment) -> Deployment:
    """Something of everything: running, waiting, held and failed jobs, one of them with a hostile name."""
    shared.rota("run", "-g", "broken", "--", "sh", "-c", "echo before; exit 3")
    shared.ok("add", "-g", "slow", "-n", _HOSTILE, "--cpus", "0.1", "--", "sh", "-c", "echo hello; sleep 1000")
    shared.ok("add", "-g", "later", "--after", "2", "--", "echo", "later")
    shared.ok("add", "-g", "held one", "--after", "2", "--", "echo", "never")
    shared.ok("hold", "4")
    wait_until(lambda: shared.states().get(2) == "running", "job 2 runs")
    return shared


@pytest.mark.parametrize("size", [(80, 24), (200, 60), (30, 8)])
def test_every_tab_is_drawn_on_screens_of_all_sizes(busy: Deployment, size: tuple[int, int]) -> None:
    async def story(eyes: Eyes) -> None:
        await eyes.see("1 running", "Running 1")
        for key, column in (("2", "STATE"), ("3", "EXIT"), ("6", "GROUP"), ("1", "ID")):
            await eyes.press(key)
            await eyes.see(column)
        assert all(len(line) <= size[0] for line in eyes.text().splitlines())

    look(busy, story, size=size)


def test_the_tables_say_what_runs_what_waits_and_what_failed_and_why(busy: Deployment) -> None:
    async def story(eyes: Eyes) -> None:
        await eyes.see(
            "Running 1", "Waiting 2", "Failed 1", "Groups 4", "1 held", "cores 0.1/", "echo hello", "slow"
        )
        await eyes.press("right")
        await eyes.see("waits for job 2", "held")
        await eyes.press("tab")
        await eyes.see("exit 3", "broken")
        await eyes.press("6")
        await eyes.see("held one", "100%")

    look(busy, story, size=(120, 30))


def test_hostile_names_are_shown_and_not_obeyed(busy: Deployment) -> None:
    async def story(eyes: Eyes) -> None:
        assert "\x1b" not in await eyes.see(r"[bold red]x[/] \e[31mred")
        await eyes.press("enter")
        await eyes.see(r"[bold red]x[/] \e[31mred", "job 2")

    look(busy, story, size=(160, 30))


def test_enter_shows_the_job_and_what_it_prints(busy: Deployment) -> None:
    async def story(eyes: Eyes) -> None:
        await eyes.see("echo hello")
        await eyes.press("enter")
        await eyes.until(lambda: isinstance(eyes.app.screen, Details), "the details")
        await eyes.until(lambda: "hello" in list(eyes.app.screen.query_one(Log).lines), "the output")
        await eyes.see("job 2", "running", "priority 0")
        await eyes.press("escape")
        await eyes.see("Running 1")
        await eyes.press("3")
        await eyes.see("exit 3")
        await eyes.press("enter")
        await eyes.see("before", "exit 3", "OUTPUT  to the end")

    look(busy, story)


def test_a_filter_is_text_or_a_selector_and_escape_clears_it(busy: Deployment) -> None:
    async def story(eyes: Eyes) -> None:
        await eyes.see("echo hello")
        await eyes.press("slash")
        await eyes.until(lambda: isinstance(eyes.app.focused, Input), "the filter can be changed")
        await eyes.type("nothing like it")
        await eyes.press("enter")
        await eyes.see("Nothing here matches the filter", "filter: nothing like it")
        await eyes.press("escape")
        await eyes.see("echo hello")
        await eyes.press("2", "slash")
        await eyes.until(lambda: isinstance(eyes.app.focused, Input), "the filter can be changed")
        await eyes.type("@later")
        await eyes.press("enter")
        await eyes.until(lambda: _ids(eyes) == ["3"], "only the job of that group")
        await eyes.press("slash")
        await eyes.until(lambda: isinstance(eyes.app.focused, Input), "the filter can be changed")
        assert eyes.app.query_one("#filter", Input).value == "@later"
        await eyes.press("escape")
        await eyes.until(lambda: _ids(eyes) == ["3", "4"], "both again")

    look(busy, story)


def test_a_filter_that_makes_no_sense_is_explained(busy: Deployment) -> None:
    async def story(eyes: Eyes) -> None:
        await eyes.see("echo hello")
        await eyes.press("slash")
        await eyes.until(lambda: isinstance(eyes.app.focused, Input), "the filter can be changed")
        await eyes.type("state=failed")
        await eyes.press("enter")
        await eyes.see("the tabs choose the state")

    look(busy, story)


def test_enter_on_a_group_shows_its_jobs(busy: Deployment) -> None:
    async def story(eyes: Eyes) -> None:
        await eyes.press("6")
        await eyes.see("broken")
        await eyes.press("enter")  # the first of them
        await eyes.see("filter: @broken", "exit 3")

    look(busy, story)


def test_enter_on_a_group_that_is_done_shows_its_complete_jobs(rota: Deployment) -> None:
    rota.start()
    rota.ok("run", "-g", "done", "--", "echo", "all well")

    async def story(eyes: Eyes) -> None:
        await eyes.press("6")
        await eyes.see("done", "100%")
        await eyes.press("enter")
        await eyes.see("filter: @done", "echo 'all well'", "Complete 1", "Failed 0")

    look(rota, story)


def test_a_narrow_screen_has_room_for_the_command(rota: Deployment) -> None:
    rota.start()
    command = "sleep 1000 # forty characters of command"
    rota.ok("add", "-g", "g", "-", input=f"{command}\n")

    async def story(eyes: Eyes) -> None:
        await eyes.see("Running 1", command)

    look(rota, story, size=(80, 24))


def test_keys_hold_release_kill_and_retry(rota: Deployment) -> None:
    rota.start()
    rota.ok("add", "-g", "g", "--", "sleep", "1000")
    rota.ok("add", "-g", "g", "--after", "1", "--", "echo", "second")
    wait_until(lambda: rota.states()[1] == "running", "it runs")

    async def story(eyes: Eyes) -> None:
        await eyes.press("2")
        await eyes.see("waits for job 1")
        await eyes.press("h")
        await eyes.see("1 job held: 2")
        await eyes.until(lambda: rota.states()[2] == "held", "it is held")
        await eyes.press("u")
        await eyes.until(lambda: rota.states()[2] == "dependent", "it is released")
        await eyes.press("1")
        await eyes.see("sleep 1000")
        await eyes.press("k")
        await eyes.see("Kill job 1?", "sleep 1000")
        await eyes.press("n")
        await eyes.until(lambda: not isinstance(eyes.app.screen, Question), "the question is gone")
        assert rota.states()[1] == "running"
        await eyes.press("k")
        await eyes.see("Kill job 1?")
        await eyes.press("y")
        await eyes.until(lambda: rota.states()[1] == "cancelled", "it is killed")
        await eyes.see("Nothing is running")
        await eyes.see("Failed 0", "Cancelled 1")
        await eyes.press("4")
        await eyes.see("sleep 1000")
        await eyes.press("r")
        await eyes.see("Retry job 1?")
        await eyes.press("y")
        await eyes.until(lambda: rota.states()[1] == "running", "it runs again")

    look(rota, story)


def test_the_tab_that_was_chosen_last_stays_whatever_is_drawn_meanwhile(busy: Deployment) -> None:
    async def story(eyes: Eyes) -> None:
        await eyes.press("2")
        await eyes.see("waits for job 2")
        app = eyes.app
        app.action_go("running")  # it is told of the change later: first comes what was seen before
        app.screen.set_focus(None)
        app._draw(datetime.now(UTC))
        await eyes.see("sleep 1000")
        app.action_go("waiting")
        app.action_go("running")
        await eyes.until(lambda: app._tabs.active == app._view.tab == "running", "the last one is chosen")
        await eyes.press("down")  # everything before it has been heard of
        assert app._tabs.active == app._view.tab == "running"

    look(busy, story)


def test_pages_follow_one_another_and_back(rota: Deployment) -> None:
    rota.start()
    rota.ok("add", "-g", "first", "--", "sleep", "1000")
    rota.ok("add", "--after", "1", "-g", "many", "-", input="".join(f"echo {n}\n" for n in range(450)))

    async def story(eyes: Eyes) -> None:
        await eyes.press("2")
        await eyes.see("1-200 of 450")
        await eyes.press("end", "down")
        await eyes.see("201-400 of 450")
        await eyes.until(lambda: _ids(eyes)[0] == "202", "the second page")
        await eyes.press("end", "pagedown")
        await eyes.see("401-450 of 450")
        await eyes.press("home", "pageup")
        await eyes.see("201-400 of 450")

    look(rota, story)


def test_a_manager_that_goes_away_is_waited_for(rota: Deployment) -> None:
    rota.start()
    rota.ok("add", "-g", "before", "--", "sleep", "1000")

    async def story(eyes: Eyes) -> None:
        await eyes.see("Running 1")
        rota.ok("manager", "stop")
        await eyes.see("waiting for it to come back")
        rota.start()
        await eyes.see("1 running")

    look(rota, story)


def test_without_jobs_it_says_how_to_add_some(rota: Deployment) -> None:
    rota.start()

    async def story(eyes: Eyes) -> None:
        await eyes.see("No jobs yet", "rota add -- sleep 60")
        for key in ("2", "3", "4", "5", "6", "enter", "k", "down", "pageup"):
            await eyes.press(key)
        await eyes.see("No jobs yet")
        await eyes.press("question_mark")
        await eyes.until(lambda: isinstance(eyes.app.screen, Help), "the keys")
        await eyes.press("escape")

    look(rota, story)


def _ids(eyes: Eyes) -> list[str]:
    table: DataTable[Any] = eyes.app.screen.query_one("#table-waiting", DataTable)
    return [str(row.key.value) for row in table.ordered_rows]


def test_without_a_manager_or_a_terminal_it_says_so_in_one_line(rota: Deployment) -> None:
    done = rota.rota("top")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "rota: rota top needs a terminal; use 'rota status --watch' in a pipe\n"
    status, text = _in_terminal(rota, "top")
    assert status == 4
    assert text == "rota: no manager is running; start one with 'rota manager start'\r\n"


def test_without_textual_it_says_what_to_install(rota: Deployment, tmp_path: Path) -> None:
    (tmp_path / "textual.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'textual'\", name='textual')"
    )
    rota.env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), rota.env.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    status, text = _in_terminal(rota, "top")
    assert status == 2
    assert text == "rota: rota top needs textual; install it with: pip install textual\r\n"


@pytest.mark.parametrize(("key", "status"), [("q", 0), ("\x03", 130)])
def test_it_leaves_the_terminal_as_it_was(busy: Deployment, key: str, status: int) -> None:
    found, text = _in_terminal(busy, "top", keys=key, after="Running 1")
    assert found == status, text
    assert text.rindex("\x1b[?1049l") > text.rindex("\x1b[?1049h")
    assert "\x1b[?25h" in text[text.rindex("\x1b[?1049h") :]


def test_no_other_command_loads_textual() -> None:
    modules = "rota.cli.main, rota.cli.commands.jobs.top, rota.cli.session.status_watch"
    code = f"import sys, {modules}; print('textual' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False\n"


def _in_terminal(rota: Deployment, *args: str, keys: str = "", after: str = "") -> tuple[int, str]:
    """Run it on a terminal of its own; press the keys when some text was drawn. Its status and all it wrote."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.clear()
        os.environ.update({**rota.env, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"})
        os.execv(ROTA, [ROTA, *args])
    text = b""
    try:
        while True:
            try:
                data = os.read(terminal, 1 << 16)
            except OSError:
                break
            text += data
            if not data:
                break
            plain = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", text)
            if keys and after.encode() in plain:
                os.write(terminal, keys.encode())
                keys = ""
    finally:
        os.close(terminal)
        _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), text.decode(errors="replace")


# -- the parts that need no manager


def test_a_slow_manager_is_spared_and_one_that_is_gone_is_looked_for_soon() -> None:
    assert next_refresh(100.0, 100.01, is_gone=False) == 101.0
    assert next_refresh(100.0, 102.0, is_gone=False) == 120.0
    assert next_refresh(100.0, 102.0, is_gone=True) == 103.0


def test_words_of_a_filter_are_selectors_or_text() -> None:
    assert parse_filter("@a 12-20 host=x,user=y foo Bar last all") == Filter(
        ("@a", "12-20", "host=x,user=y", "last"), ("foo", "bar")
    )
    assert parse_filter("") == Filter()
    assert Filter(("@a", "7")).selectors(("ready", "held")) == [
        "state=ready,@a",
        "state=ready,7",
        "state=held,@a",
        "state=held,7",
    ]
    with pytest.raises(BadInput, match="the tabs choose the state"):
        parse_filter("state=failed")


@pytest.mark.parametrize("tab", TABS, ids=lambda tab: tab.name)
@pytest.mark.parametrize("room", [80, 100, 120, 200, 500])
def test_columns_fill_the_screen_and_no_more(tab: Any, room: int) -> None:
    sizes = widths(tab.columns, room)
    assert sum(size + 2 for size in sizes if size) == room


def test_output_is_readable_across_the_borders_of_pieces() -> None:
    readable = Readable()
    assert readable.text("é\n".encode()[:1]) == ""
    assert readable.text("é\n".encode()[1:]) == "é\n"
    assert readable.text(b"10%\r20%\r30%\ndone\r\n\x1b[2Jx\ty") == "30%\ndone\n\\e[2Jx   y"
