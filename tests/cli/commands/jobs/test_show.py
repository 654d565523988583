"""`rota show`, `learn`, `logs`: what they say about one job, to people."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from rota.cli.commands.jobs.output_paths import output_file
from rota.cli.commands.jobs.show import _attempts
from rota.cli.commands.jobs.show import _card as card_of
from rota.cli.commands.reports.learn import _line
from rota.wire.views import AttemptView, JobView, ReasonView, SizeView
from tests.deployment import Deployment


def _card(rota: Deployment, job: int) -> dict[str, str]:
    lines = rota.ok("show", str(job)).partition("\n\n")[0].splitlines()[1:]
    return {line[2:14].strip(): line[15:] for line in lines}


def _amounts(rota: Deployment, job: int) -> list[str]:
    return rota.ok("show", str(job)).split("\n\n")[1].splitlines()


def test_everything_that_was_said_about_a_job_is_shown(shared: Deployment, tmp_path: Path) -> None:
    options = ["--mem", "100M", "--override", "always", "--learn", "mine", "--pipefail", "--retries", "2"]
    options += ["--backoff", "7s", "--no-retry-over", "1m", "-o", "out.%j", "-e", "%%err", "--cwd", str(tmp_path)]
    (job,) = shared.json("add", *options, "--", "true")["added"]
    shared.ok("wait", str(job))
    card = _card(shared, job)
    head, cores, memory, time = [line.split() for line in _amounts(shared, job)]
    assert head == ["ASKED", "LEARNED", "GIVEN", "USED"]
    assert (cores[:4], memory[:2], memory[3]) == (["cores", "1", "-", "1"], ["memory", "100M"], "100M")
    assert (time[:2], time[3]) == (["time", "-"], "1h")
    assert (card["learning"], card["override"], card["pipefail"]) == ("mine", "always", "yes")
    assert card["retries"] == "2, 2 left, back-off 7s, none after 1m"
    assert (card["stdout"], card["stderr"]) == (f"{tmp_path}/out.{job}", f"{tmp_path}/%err")
    assert Path(card["stdout"]).exists()
    assert Path(card["stderr"]).exists()
    assert shared.json("show", str(job))["given"] == ["mem"]


def test_what_was_not_said_is_not_shown(shared: Deployment) -> None:
    (job,) = shared.json("add", "--", "true")["added"]
    shared.ok("wait", str(job))
    assert _card(shared, job).keys().isdisjoint({"override", "pipefail", "stdout", "stderr", "takes", "walltime"})
    assert [line.split()[0] for line in _amounts(shared, job)] == ["ASKED", "cores", "memory", "time"]


def test_a_walltime_has_a_line_of_its_own(shared: Deployment) -> None:
    (job,) = shared.json("add", "--time", "5s", "--walltime", "30s", "--", "true")["added"]
    shared.ok("wait", str(job))
    *_, time, walltime = [line.split() for line in _amounts(shared, job)]
    assert (time[1], time[3], walltime[:4]) == ("5s", "30s", ["walltime", "30s", "-", "30s"])


def test_what_became_of_behaviours_can_be_read(shared: Deployment) -> None:
    (job,) = shared.json("add", "--retries", "0", "--on-exit", "run: exit 9", "--", "false")["added"]
    shared.rota("wait", str(job))
    assert "  after try 1: 'exit 9' failed (exit 9)\n" in shared.ok("show", str(job))


def test_all_hosts_of_a_job_are_shown(shared: Deployment) -> None:
    (id,) = shared.json("add", "--", "true")["added"]
    shared.ok("wait", str(id))
    job = msgspec.convert(shared.json("show", str(id)), JobView)
    assert job.hosts == [job.host]
    assert f"  host         {job.host}\n" in card_of(job)
    job.hosts = ["n1", "n2"]
    assert "  hosts        n1, n2\n" in card_of(job)
    assert "  host  " not in card_of(job)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("suspended", "suspended"),
        ("", "suspended"),
        ("suspended by ann", "suspended by ann"),
    ],
)
def test_a_reason_is_shown_when_it_says_more_than_the_state(shared: Deployment, message: str, said: str) -> None:
    (id,) = shared.json("add", "--", "true")["added"]
    job = msgspec.convert(shared.json("show", str(id)), JobView)
    job.state, job.reason = "suspended", ReasonView("suspended", message)
    assert f"  state        {said}\n" in card_of(job)


def test_attempts_fit_eighty_columns_and_no_reason_is_cut() -> None:
    long = "a reason that goes on " * 10
    attempts = [
        AttemptView(
            attempt=number,
            state="cancelled",
            reason=ReasonView("memory", long),
            signal="KILL",
            host="node-0123",
            started_at=datetime(2026, 1, 5, tzinfo=UTC),
            wall_s=7100.0,
            cpu_s=7100.0,
            peak_mem_bytes=1 << 30,
            size=SizeView(1.0, 1 << 30, 0, 3600.0, 0),
        )
        for number in (1, 10)
    ]
    lines = _attempts(attempts)
    assert [line.strip() for line in lines if "a reason" in line] == [long.strip()] * 2
    assert max(len(line) for line in lines if "a reason" not in line) <= 80


def test_logs_say_where_the_output_is_and_why_there_is_none(shared: Deployment, tmp_path: Path) -> None:
    (first,) = shared.json("add", "--cwd", str(tmp_path), "-o", "o.txt", "--", "echo", "hi")["added"]
    shared.ok("wait", str(first))
    done = shared.rota("logs", str(first))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"rota: stdout of job {first} goes to {tmp_path}/o.txt\n"
    assert shared.rota("logs", "--err", str(first)).stderr == ""
    (held,) = shared.json("add", "--after", f"afternotok:{first}", "--", "true")["added"]
    done = shared.rota("logs", str(held))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith(f"rota: job {held} ")
    assert "start" in done.stderr


def test_names_of_output_files_never_add_a_directory(shared: Deployment) -> None:
    (id,) = shared.json("add", "--", "true")["added"]
    job = msgspec.convert(shared.json("show", str(id)), JobView)
    job.stdout, job.cwd, job.name, job.host = "%x/%j-%A_%a.%N.%%", "/d", "../x", None
    assert output_file(job, 1) == f"/d/.._x/{id}-{id}_0.%N.%"
    job.array_id, job.array_index, job.host = 7, 3, "h"
    assert output_file(job, 1) == f"/d/.._x/{id}-7_3.h.%"
    assert output_file(job, 2) == ""


@pytest.mark.parametrize(
    ("resource", "slope", "intercept", "said"),
    [
        ("mem", 1.0, 9.144e6, ("memory", "≈ 1 × input + 8.72M")),
        ("disk", 2.5, -1024.0, ("disk", "≈ 2.5 × input - 1K")),
        ("time", 0.5 / (1 << 20), 3.0, ("time", "≈ 0.5 s per M of input + 3.0s")),
    ],
)
def test_what_follows_from_the_input_is_said_in_words(
    resource: str, slope: float, intercept: float, said: tuple[str, str]
) -> None:
    assert _line(resource, slope, intercept) == said


@pytest.mark.parametrize("number", ["x", "0", "-1", "100001", "1.5", "9" * 30, ""])
def test_a_number_that_is_none_is_refused_with_its_range(shared: Deployment, number: str) -> None:
    done = shared.rota("jobs", f"--limit={number}")
    assert done.returncode == 2
    assert "'--limit': must be a number from 1 to 100000" in done.stderr
