"""The `run` that submitted a job gets every byte that it prints, through any path and with any reader: fast, slow,
stalled or killed. Who only follows never slows a job, and is told what was left out. Every job ends.

What is kept and what may wait on disk are small here, so that little output fills them.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.deployment import ROTA, Deployment, deployment, wait_until
from tests.dose import FACTOR

KEPT = 64 << 10
SPOOL = 1 << 20
HALF = SPOOL // 2
#: More than all pipes, windows, memory and disk on the way hold together.
MUCH = 4 << 20
MARK = re.compile(rb"\[rota: (\d+) bytes? (?:is|are) missing here: [^\]]*\]\n")


@pytest.fixture(scope="module")
def rota(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    settings = {"keep_output": "64K", "output_spool": "1M", "cores": "4", "grace": "1s"}
    with deployment(tmp_path_factory.mktemp("attached"), **settings) as made:
        made.start()
        yield made


@cache
def numbers(size: int, tag: str) -> bytes:
    """So many bytes, about, of lines that tell where they belong."""
    lines = size // (len(tag) + 8)
    return b"".join(b"%b%07d\n" % (tag.encode(), n) for n in range(1, lines + 1))


def printing(size: int, tag: str) -> str:
    """A command that prints them."""
    lines = size // (len(tag) + 8)
    return f"seq -f '{tag}%07.0f' 1 {lines}" if lines else "true"


SIZES = [(0, 0), (100, 0), (KEPT - 9, 9), (KEPT, KEPT + 10), (KEPT + 8, 0), (2 * SPOOL, KEPT * 3), (10, SPOOL)]


def by_job(output: bytes, tags: list[str]) -> list[bytes]:
    """The lines of each job."""
    found: dict[bytes, list[bytes]] = {tag.encode(): [] for tag in tags}
    for line in output.splitlines(keepends=True):
        found[line[: line.index(b":") + 1]].append(line)
    return [b"".join(lines) for lines in found.values()]


def accounts_for(seen: bytes, whole: bytes) -> bool:
    """Is this the whole, but for as many bytes as its marks say, where they say it?"""
    found = MARK.search(seen)
    if found is None:
        return seen == whole
    before, missing, rest = seen[: found.start()], int(found[1]), seen[found.end() :]
    # A mark begins a line of its own: that may have taken a newline.
    for part in {before, before.removesuffix(b"\n")}:
        if whole.startswith(part) and accounts_for(rest, whole[len(part) + missing :]):
            return True
    return False


@pytest.mark.parametrize("how", [["--output", "line"], ["--output", "grouped"], ["--keep-order"]])
def test_every_byte_of_every_job_comes_through(rota: Deployment, how: list[str]) -> None:
    tags = [f"{how[-1][-3:]}{n}:" for n in range(len(SIZES))]
    jobs = [f"{printing(err, tag)} >&2; {printing(out, tag)}" for tag, (out, err) in zip(tags, SIZES, strict=True)]
    done = subprocess.run(
        [ROTA, "run", "--quiet", *how], input="\n".join(jobs).encode(), capture_output=True,
        env=rota.env, cwd=rota.work, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-500:]
    for stream, index in ((done.stdout, 0), (done.stderr, 1)):
        expected = [numbers(size[index], tag) for tag, size in zip(tags, SIZES, strict=True)]
        assert by_job(stream, tags) == expected
        assert len(stream) == sum(map(len, expected))
        if how == ["--keep-order"]:
            assert stream == b"".join(expected)
        elif "grouped" in how:
            assert sorted(_grouped(stream)) == sorted(tag for tag, all in zip(tags, expected, strict=True) if all)


@pytest.mark.parametrize("size", [MUCH])
def test_a_single_command_gives_every_byte(rota: Deployment, size: int, tmp_path: Path) -> None:
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        command = f"{printing(size, 'a')}; {printing(size // 3, 'b')} >&2; exit 7"
        status = rota.popen("run", "--quiet", "--", command, stdout=stdout, stderr=stderr).wait(120)
    assert (out.read_bytes() == numbers(size, "a"), err.read_bytes() == numbers(size // 3, "b")) == (True, True)
    assert status == 7


def test_progress_bars_come_through_as_they_were_printed(rota: Deployment) -> None:
    for command, how in ((["--", "printf 'a\\rb\\n'"], []), (["-"], ["--output", "grouped"])):
        done = subprocess.run(
            [ROTA, "run", "--quiet", "--rerun", *how, *command], input=b"printf 'a\\rb\\n'\n",
            env=rota.env, cwd=rota.work, capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.stdout, done.returncode) == (b"a\rb\n", 0)


@pytest.mark.parametrize("how", ["single", "grouped"])
def test_a_reader_that_stalls_holds_the_job_up_and_loses_nothing(rota: Deployment, how: str) -> None:
    began, done = rota.work / f"began-{how}", rota.work / f"done-{how}"
    command = f"{printing(HALF, 'x')}; touch {began}; {printing(MUCH, 'y')}; touch {done}"
    with _run(rota, command, how=how) as running:
        assert running.stdout is not None
        if how == "grouped":  # the client reads, whoever reads from it: it waits on its disk
            wait_until(done.exists, "all is printed")
        else:
            wait_until(began.exists, "the spool is in use")
            assert not done.exists()
        assert running.stdout.read() == numbers(HALF, "x") + numbers(MUCH, "y")
        assert running.wait(60) == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_a_job_goes_on_when_its_reader_leaves(rota: Deployment, number: signal.Signals) -> None:
    began, done = rota.work / f"began-{number}", rota.work / f"done-{number}"
    command = f"{printing(HALF, 'x')}; touch {began}; {printing(MUCH, 'y')}; touch {done}"
    with _run(rota, command) as running:
        wait_until(began.exists, "the spool is in use")
        assert not done.exists()
        running.send_signal(number)
        assert running.wait(60) == (-9 if number == signal.SIGKILL else 128 + number)
    wait_until(done.exists, "the job has gone on")
    assert rota.rota("wait", "last").returncode == 0


def test_a_job_that_waits_for_its_reader_can_be_killed(rota: Deployment) -> None:
    began = rota.work / "began-kill"
    with _run(rota, f"{printing(HALF, 'x')}; touch {began}; {printing(MUCH, 'y')}") as running:
        wait_until(began.exists, "the spool is in use")
        rota.ok("kill", "last")
        assert rota.rota("wait", "last").returncode != 0
        assert running.stdout is not None
        assert MARK.sub(b"", running.stdout.read()).startswith(numbers(HALF, "x"))
        assert running.wait(60) != 0


def test_a_reader_that_stalls_holds_nobody_else_up(rota: Deployment) -> None:
    began = rota.work / "began-other"
    with _run(rota, f"{printing(HALF, 'x')}; touch {began}; {printing(MUCH, 'y')}") as stalled:
        wait_until(began.exists, "the spool is in use")
        with _run(rota, printing(2 * KEPT, "z")) as other:
            assert other.stdout is not None
            assert other.stdout.read() == numbers(2 * KEPT, "z")
            assert other.wait(60) == 0
        stalled.kill()


def test_who_follows_slowly_is_told_what_was_left_out_and_slows_nobody(rota: Deployment) -> None:
    go, size = rota.work / "go", MUCH
    rota.ok("add", "--", _after(go, printing(size, "f")))
    job = max(rota.states())
    follower = rota.popen("logs", "-f", str(job), stdout=subprocess.PIPE)
    with follower:
        wait_until(lambda: rota.state(job) == "running", "it runs")
        go.touch()
        wait_until(lambda: rota.state(job) == "complete", "it has ended, though nobody reads")
        assert follower.stdout is not None
        seen = follower.stdout.read()
        assert follower.wait(60) == 1
    assert MARK.search(seen)
    assert accounts_for(seen, numbers(size, "f"))


@pytest.mark.parametrize("reads_first", [False, True] if FACTOR > 1 else [False])
def test_after_a_killed_manager_every_byte_comes_or_its_absence_is_told(
    tmp_path_factory: pytest.TempPathFactory, reads_first: bool
) -> None:
    settings = {"keep_output": "64K", "output_spool": "2M", "grace": "1s"}
    # One of its own: a `run` revives a manager that it has started itself, and waits for any other.
    with deployment(tmp_path_factory.mktemp("killed"), **settings) as rota:
        go, began = rota.work / "go", rota.work / "began"
        first, rest = numbers(HALF, "x"), numbers(MUCH, "y")
        command = f"{printing(HALF, 'x')}; touch {began}; {_after(go, printing(MUCH, 'y'))}"
        with _run(rota, command) as running:
            assert running.stdout is not None
            wait_until(began.exists, "the spool is in use")
            seen = running.stdout.read(len(first)) if reads_first else b""
            os.kill(rota.manager_pid(), signal.SIGKILL)
            go.touch()
            seen += running.stdout.read()
            status = running.wait(120)
        whole = first + rest
        assert accounts_for(seen, whole)
        assert (status != 0) == bool(MARK.search(seen))


def test_what_was_lost_with_a_killed_runner_is_told(rota: Deployment) -> None:
    began, grouped_began = rota.work / "began-runner", rota.work / "began-grouped-runner"
    with (
        _run(rota, f"{printing(HALF, 'x')}; touch {began}; sleep 1000") as running,
        _run(rota, f"echo x; touch {grouped_began}; sleep 1000", how="grouped") as grouped,
    ):
        assert running.stdout is not None
        assert grouped.stdout is not None
        seen = running.stdout.read(KEPT)
        wait_until(lambda: began.exists() and grouped_began.exists(), "they have printed")
        for pid in rota.runner_pids():
            os.kill(pid, signal.SIGKILL)
        seen += running.stdout.read()
        assert running.wait(120) != 0
        assert b"lost with its runner" in grouped.stdout.read()
        assert grouped.wait(120) != 0
    assert seen.endswith(b"[rota: some output is missing here: what it printed last was lost with its runner]\n")
    assert numbers(HALF, "x").startswith(seen[: seen.rindex(b"[")].rstrip(b"\n"))


def test_memory_stays_bounded_whatever_passes_through(rota: Deployment) -> None:
    size = (24 << 20) * FACTOR
    pids = [rota.manager_pid(), *rota.runner_pids()]
    before = [_peak_memory(pid) for pid in pids]
    with _run(rota, f"head -c {size} /dev/zero") as running:
        assert running.stdout is not None
        read = len(running.stdout.read(1 << 20))
        own = 0
        while part := running.stdout.read(1 << 20):
            read += len(part)
            own = own or _peak_memory(running.pid)
        assert (read, running.wait(60)) == (size, 0)
    grown = [_peak_memory(pid) - was for pid, was in zip(pids, before, strict=True)]
    assert max(grown) < 16 << 20
    assert own < 64 << 20


def _peak_memory(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    return 0


def _after(go: Path, command: str) -> str:
    return f"while ! [ -e {go} ]; do sleep 0.02; done; {command}"


def _grouped(output: bytes) -> list[str]:
    """The tags of the lines, where another one begins."""
    tags: list[str] = []
    for line in output.splitlines():
        tag = line.decode().partition(":")[0] + ":"
        if not tags or tags[-1] != tag:
            tags.append(tag)
    return tags


def _run(rota: Deployment, command: str, *, how: str = "single") -> subprocess.Popen[bytes]:
    """`rota run` whose output is not read until somebody does."""
    if how == "single":
        return rota.popen("run", "--quiet", "--", command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    pipes = {"stdout": subprocess.PIPE, "stdin": subprocess.PIPE}
    running = rota.popen("run", "--quiet", "--output", "grouped", "-", **pipes)
    assert running.stdin is not None
    running.stdin.write(command.encode() + b"\n")
    running.stdin.close()
    return running
