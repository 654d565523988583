"""Templates and their forks, with real processes: what is begun, and what never begins."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota.launcher import libc, procfs
from rota.launcher.base import Begun, Discarded, NotReady, StartOrder
from rota.launcher.forks import FILE
from rota.launcher.inside import InsideLauncher
from tests.deployment import is_alive, wait_until
from tests.launcher.conftest import _reap_no_more
from tests.launcher.test_conformance import KEY, exit_code, variables

_MODULE = """
import os
def mark(path):
    open(path, "w").close()
    return [os.getcwd(), os.environ.get("COLOUR"), sorted(os.sched_getaffinity(0)), os.getsid(0) == os.getpid()]
"""


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "deeds.py").write_text(_MODULE)
    before = os.getcwd()
    yield tmp_path
    os.chdir(before)


@pytest.fixture(autouse=True)
def reaper() -> Iterator[None]:
    """Forks become children of this process."""
    libc.become_subreaper()
    yield
    _reap_no_more()


@pytest.fixture
def launcher() -> InsideLauncher:
    return InsideLauncher()


def _words(*mode: bytes) -> tuple[None, list[bytes]]:
    return None, [os.fsencode(sys.executable), FILE, *mode]


def _template(launcher: InsideLauncher, work: Path, module: str = "deeds") -> int:
    order = StartOrder(
        (0, 0, 0), "template", _words(b"serve", module.encode()), variables(), os.fsencode(work), Discarded(),
        template=True,
    )  # fmt: skip
    return launcher.start(order).pid


def _order(work: Path, template: int, *args: Any, **fields: Any) -> StartOrder:
    request = json.dumps({"call": "deeds:mark", "args": args}).encode()
    made = StartOrder(
        KEY, "command", _words(b"call"), variables(b"COLOUR=red"), os.fsencode(work), Discarded(), file=request,
        fork_of=template,
    )  # fmt: skip
    return msgspec.structs.replace(made, **fields)


def _forked(launcher: InsideLauncher, order: StartOrder) -> Begun:
    def look() -> Begun | None:
        try:
            return launcher.start(order)
        except NotReady as why:
            assert not why.why
            return None

    found: Begun = wait_until(look, "the template is ready")
    return found


def _why(launcher: InsideLauncher, order: StartOrder) -> str:
    """Why this template does not fork at all."""

    def look() -> str:
        try:
            launcher.start(order)
        except NotReady as why:
            return why.why
        return "it did"

    found: str = wait_until(look, "the template says why")
    return found


def test_a_fork_is_our_child_with_its_own_session_environment_and_cores(
    launcher: InsideLauncher, work: Path
) -> None:
    template = _template(launcher, work)
    core = min(os.sched_getaffinity(0))
    begun = _forked(launcher, _order(work, template, str(work / "ran"), cores=[core]))
    seen = procfs.process(begun.pid)
    assert seen is None or seen.ppid == os.getpid()
    assert exit_code(launcher, begun.pid) == 0
    head, _, result = os.pread(begun.fds[-1], 10_000, 0).partition(b"}")[2].partition(b"\n")
    assert json.loads(head)["warm"] is True
    assert json.loads(result) == [str(work), "red", [core], True]
    assert launcher.end_template(template) == ""
    assert exit_code(launcher, template) == 0


def test_a_template_that_is_not_ready_or_gives_up_says_why(launcher: InsideLauncher, work: Path) -> None:
    (work / "slow.py").write_text("import time\ntime.sleep(600)\n")
    slow = _template(launcher, work, "slow")
    with pytest.raises(NotReady) as why:
        launcher.start(_order(work, slow, "x"))
    assert why.value.why == ""
    launcher.end_template(slow)
    wait_until(lambda: not is_alive(slow), "it ends although it imports")
    launcher.reap(slow)
    for text, expected in (
        ("import nosuchmodule\n", "import"),
        (
            "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n",
            "threads",
        ),
        ("import os\nos._exit(3)\n", "gone"),
    ):
        (work / "odd.py").write_text(text)
        odd = _template(launcher, work, "odd")
        assert _why(launcher, _order(work, odd, "x")) == expected
        launcher.end_template(odd)
        exit_code(launcher, odd)


def test_a_template_leaves_when_its_module_or_its_directory_changes(launcher: InsideLauncher, work: Path) -> None:
    template = _template(launcher, work)
    exit_code(launcher, _forked(launcher, _order(work, template, str(work / "ran"))).pid)
    (work / "deeds.py").write_text(_MODULE + "\n# changed\n")
    assert _why(launcher, _order(work, template, "x")) == "changed"
    exit_code(launcher, template)
    place = work / "place"
    place.mkdir()
    (place / "deeds.py").write_text(_MODULE)
    template = _template(launcher, place)
    exit_code(launcher, _forked(launcher, _order(place, template, str(work / "ran"))).pid)
    place.rename(work / "elsewhere")
    place.mkdir()
    (place / "deeds.py").write_text(_MODULE)
    assert _why(launcher, _order(place, template, "x")) == "changed"
    exit_code(launcher, template)


def test_a_template_that_has_grown_leaves(launcher: InsideLauncher, work: Path) -> None:
    (work / "deeds.py").write_text(
        _MODULE + "\nkept = []\nos.register_at_fork(after_in_parent=lambda: kept.append(b'x' * 50_000_000))\n"
    )
    template = _template(launcher, work)

    def look() -> str:  # each fork makes it larger by 50 MB
        try:
            exit_code(launcher, launcher.start(_order(work, template, str(work / "ran"))).pid)
        except NotReady as why:
            return why.why
        return ""

    assert wait_until(look, "it leaves") == "large"
    exit_code(launcher, template)


def test_a_template_that_was_stopped_is_killed_and_nothing_begins(launcher: InsideLauncher, work: Path) -> None:
    template = _template(launcher, work)
    exit_code(launcher, _forked(launcher, _order(work, template, str(work / "ran"))).pid)
    (work / "ran").unlink()
    os.kill(template, signal.SIGSTOP)
    with pytest.raises(NotReady) as why:
        launcher.start(_order(work, template, str(work / "ran")))
    assert why.value.why == "gone"
    assert exit_code(launcher, template) == -signal.SIGKILL
    assert not (work / "ran").exists()


def test_a_fork_whose_start_is_not_confirmed_never_begins(work: Path) -> None:
    ours, its = socket.socketpair()
    words = [sys.executable, os.fsdecode(FILE), "serve", "deeds"]
    os.chdir(work)
    action = (os.POSIX_SPAWN_DUP2, its.fileno(), 3)
    template = os.posix_spawn(sys.executable, words, os.environ, file_actions=[action])
    its.close()
    assert json.loads(ours.makefile().readline()) == {"ready": True}
    for word, ran in ((b"", False), (b"?", False), (b"!", True)):
        marked = work / f"ran{ran}"
        request = os.memfd_create("call")
        os.write(request, json.dumps({"call": "deeds:mark", "args": [str(marked)]}).encode())
        settings = {"cwd": str(work), "cores": [], "cgroups": [], "variables": []}
        data = json.dumps(settings).encode()
        heard, go = os.pipe()
        null = os.open(os.devnull, os.O_RDWR)
        socket.send_fds(ours, [struct.pack("!I", len(data)) + data], [null, null, null, request, heard])
        pid = json.loads(ours.makefile().readline())["pid"]
        assert is_alive(pid)
        os.write(go, word)
        for fd in (heard, go, null):
            os.close(fd)
        wait_until(lambda pid=pid: not is_alive(pid), "it ends")
        assert marked.exists() == ran
        os.close(request)
    ours.close()
    assert os.waitpid(template, 0)[1] == 0


def test_a_template_survives_its_forks_and_many_of_them_leave_nothing(
    launcher: InsideLauncher, work: Path
) -> None:
    template = _template(launcher, work)
    exit_code(launcher, _forked(launcher, _order(work, template, str(work / "ran"))).pid)
    before, its = len(os.listdir("/proc/self/fd")), len(os.listdir(f"/proc/{template}/fd"))
    begun = time.monotonic()
    for _ in range(50):
        made = launcher.start(_order(work, template, str(work / "ran")))
        assert exit_code(launcher, made.pid) == 0
        os.close(made.fds[-1])
    print(f"{(time.monotonic() - begun) * 20:.2f} ms from the order to the end")
    assert len(os.listdir("/proc/self/fd")) <= before  # another test may leave some to the garbage collector
    assert len(os.listdir(f"/proc/{template}/fd")) == its
    launcher.end_template(template)
    exit_code(launcher, template)
