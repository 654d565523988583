"""`rota status`: how it looks on every screen, what it promises in JSON, how --watch goes on and ends."""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from datetime import UTC, datetime, timedelta

import pytest

from rota.cli.render.status_text import Canvas, bar, busiest, done_parts, rate_text, status_text
from rota.cli.render.text import cells
from rota.cli.session.status_watch import StatusBlocks
from rota.wire.views import StatusView
from tests.deployment import ROTA, Deployment, wait_until

_NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


def _many(groups: int) -> StatusView:
    each = {"ready": 10, "running": 1, "complete": 4, "failed": 1, "held": 2}
    return StatusView(
        {state: n * groups for state, n in each.items()},
        {f"group {number:04}": each | {"running": 1 + number} for number in range(groups)},
        expected_end=_NOW + timedelta(seconds=90),
        rate=2.5,
        group_rates={"group 0000": 0.05},
        group_expected_end={"group 0000": _NOW + timedelta(seconds=30)},
        cores=8.0,
        cores_in_use=1.5,
    )


@pytest.mark.parametrize("columns", [20, 40, 64, 80, 120, 300])
@pytest.mark.parametrize("lines", [3, 5, 10, 24, 100])
@pytest.mark.parametrize("groups", [1, 2, 40])
def test_it_fits_every_screen(columns: int, lines: int, groups: int) -> None:
    text = status_text(_many(groups), Canvas(columns, lines), now=_NOW)
    drawn = text.split("\n")
    assert all(cells(line) <= columns for line in drawn), text
    assert len(drawn) <= max(lines, 5), text


def test_only_the_busiest_groups_are_shown_where_not_all_fit() -> None:
    text = status_text(_many(1000), Canvas(100, 12), now=_NOW)
    assert "… and 992 more groups" in text
    assert "group 0999" in text
    assert "group 0000" not in text
    assert busiest(_many(3).groups) == ["group 0002", "group 0001", "group 0000"]


def test_nothing_is_cut_or_left_out_in_a_pipe() -> None:
    name = "a very long name " * 20
    found = StatusView({"ready": 1}, {name: {"ready": 1}})
    assert name in status_text(found, Canvas())
    assert status_text(_many(1000), Canvas(), now=_NOW).count("group 0") == 1000


def test_a_group_has_its_own_rate_and_end_and_the_whole_has_both() -> None:
    head, first, second, total, last = status_text(_many(2), Canvas(), now=_NOW).split("\n")
    assert head.split()[-3:] == ["RATE", "ENDS", "IN"]
    assert first.split()[-2:] == ["3.0/min", "30s"]
    assert second.split()[-2:] == ["-", "-"]
    assert total.split()[-2:] == ["2.5/s", "1m30s"]
    assert last.startswith("rate: 2.5/s  cores: 1.5 of 8 in use  expected end: 2026-01-05")
    assert last.endswith(", in 1m30s")


def test_hostile_names_of_groups_are_harmless() -> None:
    text = status_text(
        StatusView({"ready": 1}, {"a\x1b[2J\nb": {"ready": 1}}), Canvas(80, 24, colour=True), now=_NOW
    )
    assert r"a\e[2J\nb" in text


@pytest.mark.parametrize(
    ("rate", "text"), [(1234.0, "1,234/s"), (9.94, "9.9/s"), (0.5, "30/min"), (0.02, "1.2/min"), (0.001, "3.6/h")]
)
def test_rates_are_easy_to_read(rate: float, text: str) -> None:
    assert rate_text(rate) == text


@pytest.mark.parametrize("share", [-1.0, 0.0, 0.01, 0.5, 0.999, 1.0, 2.0])
def test_a_bar_always_has_its_size(share: float) -> None:
    assert cells(bar(share, 10)) == 10


@pytest.mark.parametrize("columns", [None, 80, 64])
def test_cancelled_jobs_are_not_counted_as_failed(columns: int | None) -> None:
    counts = {"complete": 1, "failed": 2, "cancelled": 23}
    head, line = status_text(StatusView(counts, {"g": counts}), Canvas(columns), now=_NOW).split("\n")
    shown = dict(zip(head.replace("ENDS IN", "END").split(), line.split(), strict=True))
    assert (shown["FAILED"], shown["CANCELLED"]) == ("2", "23")


def test_a_bar_has_a_part_for_each_way_to_end() -> None:
    parts = done_parts({"complete": 2, "failed": 4, "cancelled": 2, "ready": 2}, 10)
    assert parts == [("██", "complete"), ("██", "cancelled"), ("████", "failed"), ("░░", "dim")]
    assert done_parts({"failed": 5}, 10) == [("█" * 10, "failed")]
    assert done_parts({}, 3) == [("░░░", "dim")]
    for many in (1, 7, 1000, 10**6):
        parts = done_parts({"complete": many, "failed": 1, "cancelled": 1, "ready": 1}, 10)
        assert sum(cells(text) for text, _ in parts) == 10
        assert {"failed", "cancelled"} <= {state for _, state in parts}


def test_while_watching_a_column_that_was_there_stays(capsys: pytest.CaptureFixture[str]) -> None:
    show = StatusBlocks(as_json=False)
    for counts in ({"ready": 1, "running": 1}, {"running": 1, "failed": 1}, {"failed": 2}):
        show.show(StatusView(counts, {"g": counts}))
    heads = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("GROUP")]
    assert [head[2:-3] for head in heads] == [["READY", "RUNNING"]] + [["READY", "RUNNING", "FAILED"]] * 2


def test_json_keeps_its_promise_and_tells_rates_and_ends(rota: Deployment) -> None:
    rota.start()
    assert rota.json("status")["counts"] == {}
    rota.ok("add", "-g", "work", "-", input="".join(f"sleep 0.2 # {n}\n" for n in range(400)))
    # Between two jobs nothing may be in use for an instant.
    found = wait_until(
        lambda: (seen := rota.json("status"))["group_rates"] and seen["cores_in_use"] and seen, "a rate is known"
    )
    assert set(found["counts"]) <= {"ready", "scheduled", "starting", "running", "finishing", "complete"}
    assert found["groups"] == {"work": found["counts"]}
    assert found["group_rates"]["work"] > 0
    for end in (found["expected_end"], found["group_expected_end"]["work"]):
        assert datetime.fromisoformat(end) > datetime.now(UTC)
    assert 0 < found["cores_in_use"] <= found["cores"]
    part = rota.json("status", "1-3")
    assert sum(part["counts"].values()) == 3
    assert part["group_rates"] == {}
    assert rota.json("status", "@nothing")["groups"] == {}


def test_watch_prints_block_after_block_in_a_pipe_until_done(rota: Deployment) -> None:
    rota.start()
    rota.ok("add", "--retries", "0", "-", input="until test -e go; do sleep 0.05; done\nexit 3\n")
    watching = rota.popen("status", "--until-done", "--json", stdout=subprocess.PIPE)
    assert watching.stdout is not None
    assert [json.loads(watching.stdout.readline())["groups"].keys() for _ in range(2)] == [{"default"}] * 2
    (rota.work / "go").touch()
    rest, _ = watching.communicate(timeout=60)
    assert watching.returncode == 0
    assert json.loads(rest.splitlines()[-1])["counts"] == {"complete": 1, "failed": 1}
    text = rota.ok("status", "--watch", "--until-done", "last")
    assert text.startswith("GROUP")
    assert "\x1b" not in text


def test_a_manager_that_goes_away_is_told_once_and_waited_for(rota: Deployment) -> None:
    rota.start()
    (job,) = rota.json("add", "--", "sleep", "1000")["added"]
    watching = rota.popen("status", "--watch", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert watching.stdout is not None
        assert watching.stderr is not None
        watching.stdout.readline()
        rota.ok("manager", "stop")
        assert re.fullmatch(rb"rota: .*; waiting for it to come back\n", watching.stderr.readline())
        rota.start()
        assert watching.stderr.readline() == b"rota: the manager is back\n"
        while "running" not in json.loads(watching.stdout.readline())["counts"]:
            pass
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) == 130
        assert watching.stderr.read().strip() == b""
    finally:
        watching.kill()
        watching.communicate()
        rota.rota("kill", str(job))


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_on_a_terminal_it_draws_over_itself_and_leaves_it_as_it_was(
    shared: Deployment, number: int, status: int
) -> None:
    shared.ok("add", "-", input="".join(f'{{"cmd": "true {n}", "group": "g{n}"}}\n' for n in range(30)))
    terminal = Terminal(shared, "status", "--watch", lines=12, columns=80)
    terminal.until("more groups")
    assert terminal.text.startswith("\x1b[?1049h\x1b[?25l")
    terminal.resize(lines=40, columns=100)
    terminal.until("g15 ")
    os.kill(terminal.pid, number)
    assert terminal.wait() == status
    assert "\x1b[?25h\x1b[?1049l" in terminal.text
    assert "GROUP" in terminal.text[terminal.text.rindex("\x1b[?1049l") :]  # the last look stays


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, rota: Deployment, *args: str, lines: int, columns: int) -> None:
        self.text = ""
        self._decode = codecs.getincrementaldecoder("utf-8")().decode  # a read may end within a character
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            os.execve(ROTA, [ROTA, *args], {**rota.env, "TERM": "xterm"})

    def resize(self, *, lines: int, columns: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def until(self, words: str) -> None:
        while words not in self.text:
            self.text += self._decode(os.read(self._fd, 65536))

    def wait(self) -> int:
        try:
            while data := os.read(self._fd, 65536):
                self.text += self._decode(data)
        except OSError:
            pass  # nobody has it open any more
        os.close(self._fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
