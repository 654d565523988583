"""Text for people: harmless, aligned, never cut in a pipe; and `rota run` on a real (pseudo) terminal."""

from __future__ import annotations

import io
import os
import pty
import select
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.cli.render.progress import ProgressLine
from rota.cli.render.text import cells, command_text, cut, few_ranges, harmless, ranges, table
from tests.deployment import ROTA, Deployment


@given(st.text())
def test_nothing_harmful_is_left_of_any_text(text: str) -> None:
    shown = harmless(text)
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u2066\u200b" for c in shown)
    shown.encode()
    assert harmless(shown) == shown


def test_a_command_is_one_line_that_a_shell_would_understand() -> None:
    assert command_text("a\nb\x1b[0m") == "a\\nb\\e[0m"
    assert command_text(["echo", "a b", "'"]) == """echo 'a b' ''"'"''"""


@given(st.text(max_size=30), st.integers(1, 30))
def test_a_text_is_cut_to_its_room(text: str, room: int) -> None:
    assert cells(cut(harmless(text), room)) <= room


def test_tables_are_aligned_and_never_cut_in_a_pipe() -> None:
    long = "x" * 500
    text = table(
        ["ID", "STATE", "COMMAND"],
        [["1", "ready", long], ["100", "complete", "y"]],
        stream=io.StringIO(),
        right="r",
    )
    assert text.splitlines() == [
        " ID  STATE     COMMAND",
        f"  1  ready     {long}",
        "100  complete  y",
    ]


@given(st.sets(st.integers(1, 60)))
def test_ranges_name_exactly_the_ids(ids: set[int]) -> None:
    named = set()
    for part in filter(None, ranges(sorted(ids)).split(",")):
        low, _, high = part.partition("-")
        named |= set(range(int(low), int(high or low) + 1))
    assert named == ids


def test_many_ranges_are_not_all_listed() -> None:
    assert few_ranges(list(range(1, 100, 2))).endswith("… (50 in all)")


def test_the_progress_line_counts_without_what_was_skipped() -> None:
    line = ProgressLine(show=False)
    line.expect({"complete": 7, "failed": 1, "running": 2, "ready": 5}, skipped=5)
    text = line.text(line.begun + 2)
    assert "3/10" in text
    assert "2 running" in text
    assert "1 failed" in text


class Terminal:
    """`rota` on a pseudo-terminal."""

    def __init__(self, rota: Deployment, *words: str) -> None:
        self._pid, self._handle = pty.fork()
        if self._pid == 0:
            os.chdir(rota.work)
            os.execve(ROTA, [ROTA, *words], {**rota.env, "TERM": "xterm", "COLUMNS": "100"})
        self.seen = ""

    def until(self, text: str, seconds: float = 60) -> str:
        limit = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < limit, f"{text!r} never came, but {self.seen!r}"
            if not self._read():
                break
        assert text in self.seen, self.seen
        return self.seen

    def type(self, keys: bytes) -> None:
        os.write(self._handle, keys)

    def status(self) -> int:
        while self._read():
            pass
        os.close(self._handle)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def _read(self) -> bool:
        if select.select([self._handle], [], [], 60)[0]:
            try:
                data = os.read(self._handle, 65536)
            except OSError:
                return False
            self.seen += data.decode("utf-8", "replace")
            return bool(data)
        return False


def test_progress_is_drawn_and_taken_away_before_output(rota: Deployment) -> None:
    (rota.work / "jobs.txt").write_text("sleep 1; echo first\nsleep 1.5; echo second\n")
    terminal = Terminal(rota, "run", "jobs.txt")
    terminal.until("2 complete")
    assert terminal.status() == 0
    assert "0/2" in terminal.seen
    assert "\r\x1b[Kfirst\r\n" in terminal.seen
    assert "\r\x1b[Ksecond\r\n" in terminal.seen


@pytest.mark.parametrize(
    ("keys", "status", "states"),
    [
        (b"d", 130, {"running"}),
        (b"c", 130, {"cancelled"}),
        (b"\x03", 130, {"cancelled"}),
        (b"k", 0, {"complete"}),
    ],
)
def test_ctrl_c_asks_whether_to_detach_or_to_cancel(
    rota: Deployment, keys: bytes, status: int, states: set[str]
) -> None:
    rota.start()
    (rota.work / "jobs.txt").write_text("while ! test -e go; do sleep 0.1; done\n" * 2)
    terminal = Terminal(rota, "run", "jobs.txt")
    terminal.until("2 running")
    terminal.type(b"\x03")
    terminal.until("[d]etach, [c]ancel, [k]eep waiting?")
    terminal.type(keys)
    if keys == b"k":
        terminal.until("keep\r\n")
        (rota.work / "go").touch()
    assert terminal.status() == status
    assert set(rota.states().values()) == states


def test_run_on_a_terminal_without_input_says_what_to_give(rota: Deployment) -> None:
    terminal = Terminal(rota, "run")
    assert terminal.status() == 2
    assert "there is no input; give a file, '-' for stdin, or a command after '--'" in terminal.seen
