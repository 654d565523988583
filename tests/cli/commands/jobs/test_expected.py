"""Whatever command is asked, a job begins and ends at the same time, and a group when its last job does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from tests.cli.planned import Site, moment, site_of
from tests.deployment import wait_until


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site_of(tmp_path_factory.mktemp("expected")) as made:
        yield made


@pytest.fixture
def site(shared: Site) -> Iterator[Site]:
    yield shared
    shared.reset()


def _times(site: Site, job: int) -> dict[str, tuple[float | None, float | None]]:
    """Start and end, by who was asked."""

    def pair(found: dict[str, str | None], start: str, end: str) -> tuple[float | None, float | None]:
        values = (found[start], found[end])
        return (None if values[0] is None else moment(values[0]), None if values[1] is None else moment(values[1]))

    drawn = [each for each in site.json("gantt")["jobs"] if each["id"] == job]
    listed = [each for each in site.json("jobs", str(job))["jobs"] if each["id"] == job]
    found = {
        "show": pair(site.json("show", str(job)), "expected_start", "expected_end"),
        "why": pair(site.why(job), "expected_start", "expected_end"),
        "jobs": pair(listed[0], "expected_start", "expected_end"),
    }
    if drawn:
        found["gantt"] = pair(drawn[0], "start", "end")
    return found


def _agree(site: Site, job: int, *, started: bool = False) -> tuple[float | None, float | None]:
    """All say the same, but for the time that passes between two questions."""
    found = _times(site, job)
    begin, end = found["show"]
    for who, (start, stop) in found.items():
        if not (started and who == "gantt"):
            assert (start is None) == (begin is None), who
            assert start is None or start == pytest.approx(begin, abs=30), who
        assert (stop is None) == (end is None), who
        assert stop is None or stop == pytest.approx(end, abs=30), who
    return begin, end


def test_all_commands_tell_the_same_times_of_planned_and_running_jobs(site: Site) -> None:
    running = site.holds("-l", "core=4,walltime=1h", "-g", "one")
    first = site.waits("-l", "core=3,walltime=20m", "-g", "two")
    second = site.waits("-l", "core=2,walltime=10m", "-g", "two")
    site.only_reason(second)
    _none, ends = _agree(site, running, started=True)
    assert ends is not None
    start, end = _agree(site, first)
    assert (start, end) == (pytest.approx(ends, abs=30), pytest.approx(ends + 1200, abs=30))
    later, last = _agree(site, second)
    assert (later, last) == (pytest.approx(end, abs=30), pytest.approx(end + 600, abs=30))  # type: ignore[operator]
    status = site.json("status", "@one", "@two")
    assert moment(status["group_expected_end"]["one"]) == pytest.approx(ends, abs=30)
    assert moment(status["group_expected_end"]["two"]) == pytest.approx(last, abs=30)
    assert moment(status["expected_end"]) == pytest.approx(last, abs=30)
    asked = site.json("plan", "-l", "core=4,walltime=10m")
    assert moment(asked["start"]) == pytest.approx(last, abs=30)
    assert moment(asked["end"]) - moment(asked["start"]) == pytest.approx(600)


def test_a_window_holds_in_every_answer(site: Site) -> None:
    opens = (datetime.now() + timedelta(hours=3)).replace(minute=0, second=0, microsecond=0)
    closes = opens + timedelta(hours=2)
    site.ok("limit", f"late@{opens:%H:%M}-{closes:%H:%M}")
    job = site.waits("--limit", "late", "--time", "1m", "-g", "windowed")
    start, end = _agree(site, job)
    assert (start, end) == (opens.timestamp(), opens.timestamp() + 60)
    found = site.json("status", "@windowed")
    assert moment(found["expected_end"]) == end
    assert f"expected end: {opens + timedelta(minutes=1):%Y-%m-%d %H:%M:%S}" in site.ok("status", "@windowed")
    assert moment(site.json("plan", "--cpus", "1")["start"]) < opens.timestamp()


def test_where_nothing_can_be_said_every_answer_says_why(site: Site) -> None:
    job = site.holds("-g", "endless")
    shown = site.json("show", str(job))
    assert (shown["expected_end"], shown["expected_reason"]["code"]) == (None, "no_estimate")
    assert site.why(job)["expected_reason"] == shown["expected_reason"]
    status = site.json("status", "@endless")
    assert status["group_end_reasons"]["endless"] == status["end_reason"] == shown["expected_reason"]
    assert "expected end: not known: no --time or --walltime was given" in site.ok("status", "@endless")
    assert "expected end:   not known: no --time or --walltime was given" in site.ok("why", str(job))


def test_a_pause_is_the_reason_why_what_waits_has_no_end_and_what_runs_keeps_its_own(site: Site) -> None:
    site.holds("-l", "core=4,walltime=1h", "-g", "goes on")
    waiting = site.waits("-l", "core=1,walltime=1h", "-g", "stands")
    site.ok("manager", "pause")
    try:
        wait_until(lambda: site.json("status")["paused"], "it is paused")
        status = site.json("status")
        assert set(status["group_expected_end"]) >= {"goes on"}
        assert status["group_end_reasons"]["stands"]["code"] == "paused"
        assert site.why(waiting)["expected_reason"]["code"] == "paused"
    finally:
        site.ok("manager", "resume")
