"""Output that is not there is told: lost on a full disk, left out of the middle, cut, damaged, gone."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployment import Deployment, deployment, wait_until

pytestmark = pytest.mark.cold

KEEP = 600 << 10


@pytest.fixture(scope="module")
def rota(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Its outputs have a disk of their own, which is soon full."""
    if os.getuid() != 0:
        pytest.fail("this test mounts a tmpfs: run it as root, or name it in ROTA_TEST_SKIP")
    top = tmp_path_factory.mktemp("lost")
    with deployment(top, keep_output="600K", grace="1s") as made:
        made.start()
        outputs = made.home / "output"
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(outputs)], check=True)
        try:
            yield made
        finally:
            made.close()
            subprocess.run(["umount", "-l", str(outputs)], check=True)


def logs(rota: Deployment, job: int) -> subprocess.CompletedProcess[str]:
    return rota.rota("logs", str(job))


def segment(rota: Deployment) -> Path:
    (found,) = (rota.home / "output").iterdir()
    return found


def last_attempt(rota: Deployment, job: int) -> dict[str, object]:
    found: dict[str, object] = rota.json("show", str(job))["attempts"][-1]
    return found


def test_the_middle_that_is_not_kept_is_marked_at_its_place(rota: Deployment) -> None:
    rota.ok("add", "--sync", "--", "seq", "0", "200000")
    whole = "".join(f"{n}\n" for n in range(200_001))
    job = max(rota.states())
    done = logs(rota, job)
    half = KEEP // 2
    why = "not kept; to keep more, raise the setting keep_output"
    mark = f"[rota: {len(whole) - KEEP} bytes are missing here: {why}]\n"
    assert whole[half - 1 : half] != "\n", "the mark begins a line of its own"
    assert done.stdout == whole[:half] + "\n" + mark + whole[-half:]
    assert (done.returncode, done.stderr) == (1, "")
    attempt = last_attempt(rota, job)
    assert (attempt["out_bytes"], attempt["err_bytes"], attempt["output_missing"]) == (len(whole), 0, None)
    told = rota.rota("logs", str(job), "--json")
    (gap,) = json.loads(told.stdout)["missing"]
    assert (told.returncode, gap["stream"], gap["offset"], gap["bytes"], gap["code"]) == (
        1, "stdout", half, len(whole) - KEEP, "not_kept",
    )  # fmt: skip
    with rota.client() as client:
        raw = client.output(job, marks=False)
        assert raw.decode() == whole[:half] + whole[-half:]
        assert [each.bytes for each in raw.absent] == [len(whole) - KEEP]


def test_output_that_cannot_be_synced_is_told_and_the_manager_goes_on(rota: Deployment) -> None:
    pid, path = rota.manager_pid(), segment(rota)
    fault = ["-e", "trace=fdatasync", "-e", "inject=fdatasync:error=ENOSPC", "-P", str(path)]
    with subprocess.Popen(["strace", "-f", "-p", str(pid), *fault], stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr is not None
        wait_until(lambda: "attached" in tracer.stderr.readline(), "the disk fails")  # type: ignore[union-attr]
        job = rota.json("add", "--", "echo", "not", "synced")["added"][0]
        rota.ok("wait", str(job))
        tracer.terminate()
    assert rota.manager_pid() == pid
    attempt = last_attempt(rota, job)
    assert (attempt["state"], attempt["out_bytes"]) == ("complete", 11)
    assert attempt["output_missing"]["code"] == "disk_full"  # type: ignore[index]
    assert logs(rota, job).returncode == 1


def test_output_lost_on_a_full_disk_is_told_and_the_job_is_complete_all_the_same(rota: Deployment) -> None:
    commands = "\n".join(f"head -c 400000 /dev/zero | tr '\\0' x; echo {n} >&2" for n in range(30))
    jobs = rota.json("add", "-", input=commands)["added"]
    rota.ok("wait", "all")
    assert {rota.states()[job] for job in jobs} == {"complete"}
    lost = []
    with rota.client() as client:
        for job in jobs:
            (attempt,) = client.job(job).attempts  # type: ignore[misc]
            assert attempt.out_bytes == 400_000
            if attempt.output_missing is None:
                assert client.output(job) == b"x" * 400_000
                assert client.output(job).absent == ()
            else:
                assert attempt.output_missing.code == "disk_full"
                lost.append(job)
    assert 10 < len(lost) < 25, "the disk has room for some"
    done = logs(rota, lost[0])
    why = "the disk was full when its output was to be kept"
    assert done.stdout == f"[rota: 400000 bytes are missing here: {why}]\n"
    assert done.stderr.startswith("[rota: ")
    assert done.returncode == 1
    assert "output missing" in rota.ok("show", str(lost[0]))
    kept = next(job for job in jobs if job not in lost)
    assert logs(rota, kept).returncode == 0


def test_a_segment_that_is_damaged_cut_or_gone_is_told(rota: Deployment) -> None:
    path = segment(rota)
    with rota.client() as client:
        text = path.read_bytes()
        said = text.rpartition(b"x")[2]
        first = min(rota.states())
        (last,) = (job for job in rota.states() if client.output(job, err=True) == said)

        def missing(job: int) -> str:
            (attempt,) = client.job(job).attempts  # type: ignore[misc]
            return attempt.output_missing.code if attempt.output_missing else ""

        assert (missing(first), missing(last)) == ("", "")
        at = text.rindex(b"xxxx")
        with path.open("r+b") as file:
            file.seek(at - 200_000)
            file.write(b"!")
        assert (missing(first), missing(last)) == ("", "damaged")
        found = client.output(last)
        assert b"!" not in found
        assert [each.code for each in found.absent] == ["damaged"]
        assert logs(rota, last).returncode == 1
        os.truncate(path, at - 300_000)
        assert (missing(first), missing(last)) == ("", "cut")
        assert logs(rota, last).returncode == 1
        path.unlink()
        assert (missing(first), missing(last)) == ("gone", "gone")
        done = logs(rota, first)
        assert done.returncode == 1
        assert "is gone]" in done.stdout
