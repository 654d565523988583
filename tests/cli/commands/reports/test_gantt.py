"""`rota gantt`: the drawing, line by line, and the command against a real manager."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rota.cli.render.chart_style import ChartStyle
from rota.cli.render.gantt_axis import ticks_of
from rota.cli.render.gantt_text import chart, span_of
from rota.cli.render.text import cells
from rota.wire.gantt import GanttHost, GanttJob, GanttView
from tests.cli.planned import Site, site_of
from tests.deployment import Deployment, wait_until

NOW = datetime(2026, 11, 16, 8, 0, tzinfo=UTC)


def host(name: str, resources: str, **more: Any) -> GanttHost:
    fields = {"state": "alive", "drain": False, "connected": True, "usable": True, "available_until": None}
    return GanttHost(host=name, resources=resources, **{**fields, **more})


def job(id: int, start: float, end: float, resources: str, state: str = "ready", *types: str) -> GanttJob:
    return GanttJob(
        id=id, name="", user="ann", project="", queue="default", group="g", state=state, type=list(types),
        start=NOW + timedelta(minutes=start), end=NOW + timedelta(minutes=end), resources=resources, host=None,
    )  # fmt: skip


def view(hosts: list[GanttHost], jobs: list[GanttJob]) -> GanttView:
    return GanttView(now=NOW, plan=True, hosts=hosts, jobs=jobs, left_out=0, waiting=[], waiting_total=0)


def rows(
    found: GanttView, *, width: int = 65, minutes: float = 60, look: ChartStyle | None = None
) -> dict[str, str]:
    """Label → what is drawn; one column a minute where the labels have four letters."""
    begin = NOW.timestamp()
    lines = chart(found, begin, begin + minutes * 60, look or ChartStyle(width=width))
    return {line[: len(line) - 60].strip(): line[-60:] for line in lines[2:] if len(line) == width}


def test_a_job_is_its_id_and_a_line_and_what_is_free_is_dots() -> None:
    found = view([host("n001", "1-4")], [job(7, 0, 10, "1-4", "running"), job(123, 20, 30, "1-4")])
    assert rows(found) == {"n001": "|7========" + "·" * 10 + "|123------" + "·" * 30}


def test_resources_of_a_host_that_differ_have_rows_of_their_own() -> None:
    found = view([host("n1", "1-4")], [job(7, 0, 60, "2-3", "running")])
    drawn = chart(found, NOW.timestamp(), NOW.timestamp() + 3600, ChartStyle(width=66))[2:4]
    assert drawn == ["n1 1,4 " + "·" * 59, "n1 2-3 |7" + "=" * 57]


def test_hosts_that_look_alike_are_one_row() -> None:
    hosts = [host(f"n{number:02}", f"{number}") for number in range(1, 11)]
    lines = chart(
        view(hosts, [job(5, 0, 60, "3", "running")]), NOW.timestamp(), NOW.timestamp() + 3600, ChartStyle()
    )
    labels = [line.split()[0] for line in lines[2:4]]
    assert labels == ["n[01-02,04-10]", "n03"]


def test_a_domain_that_all_share_is_left_out() -> None:
    both = [host("a1.example.org", "1"), host("b2.example.org", "2", usable=False)]
    lines = chart(view(both, []), NOW.timestamp(), NOW.timestamp() + 3600, ChartStyle())
    assert [line.split()[0] for line in lines[2:4]] == ["a1", "b2"]


def test_what_may_not_be_used_is_hatched_and_says_why() -> None:
    hosts = [
        host("a", "1", usable=False, drain=True),
        host("b", "2", usable=False, state="absent"),
        host("c", "3", usable=False, connected=False),
        host("d", "4", available_until=NOW + timedelta(minutes=30)),
    ]
    lines = chart(
        view(hosts, [job(1, 0, 30, "1", "running")]), NOW.timestamp(), NOW.timestamp() + 3600, ChartStyle()
    )
    found = {line.rpartition(" ")[0].strip(): line.rpartition(" ")[2] for line in lines[2:6]}
    assert set(found) == {"a (drain)", "b (absent)", "c (no runner)", "d"}
    assert re.fullmatch(r"\|1=+/+", found["a (drain)"])
    assert re.fullmatch(r"/+", found["b (absent)"])
    assert re.fullmatch(r"·+/+", found["d"])
    assert abs(found["d"].count("·") - found["d"].count("/")) <= 1


def test_what_lies_outside_the_hours_of_a_host_is_hatched() -> None:
    found = view([host("n001", "1", hours="08:10-08:40"), host("n002", "2")], [job(7, 10, 20, "1")])
    found.closed = {
        "08:10-08:40": [
            (NOW - timedelta(hours=15), NOW + timedelta(minutes=10)),
            (NOW + timedelta(minutes=40), NOW + timedelta(hours=24)),
        ]
    }
    assert rows(found) == {"n001": "/" * 10 + "|7--------" + "·" * 20 + "/" * 20, "n002": "·" * 60}


def test_what_lies_in_a_container_is_drawn_over_it() -> None:
    found = view([host("n001", "1")], [job(2, 10, 20, "1"), job(1, 0, 60, "1", "running", "container")])
    assert rows(found) == {"n001": "|1========|2--------|" + rows(found)["n001"][21:]}


def test_a_job_too_short_for_its_id_is_still_seen() -> None:
    found = view([host("n001", "1")], [job(1234, 10, 10.1, "1"), job(12, 20, 22, "1"), job(5678, 30, 33, "1")])
    drawn = rows(found)["n001"]
    assert (drawn[10], drawn[20:22], drawn[30:33]) == ("|", "12", "|--")


@pytest.mark.parametrize("width", [40, 57, 80, 120, 333])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    hosts = [host(f"a-host-with-a-very-long-name-{number}.example.org", f"{number}") for number in range(1, 9)]
    jobs = [job(1000 + number, number, number * 7, f"{number}") for number in range(1, 9)]
    found = view(hosts, jobs)
    for look in (ChartStyle(width=width), ChartStyle(width=width, plain=True)):
        lines = chart(found, *span_of(found, None, None), look)
        assert max(cells(line) for line in lines) <= width
        assert look.plain <= all(line.isascii() for line in lines)


def test_colours_change_nothing_but_colours() -> None:
    found = view([host("n1", "1-4")], [job(7, 0, 60, "2-3", "running")])
    begin, end = span_of(found, None, None)
    plain = chart(found, begin, end, ChartStyle())
    for colours in (8, 256):
        coloured = chart(found, begin, end, ChartStyle(colours=colours))
        assert coloured != plain
        assert [re.sub("\x1b\\[[0-9;]*m", "", line) for line in coloured] == plain


def test_rows_beyond_the_bound_are_counted() -> None:
    hosts = [host(f"n{number}", f"{number}") for number in range(1, 101)]
    jobs = [job(number, number, number + 5, f"{number}") for number in range(1, 101)]
    lines = chart(view(hosts, jobs), NOW.timestamp(), NOW.timestamp() + 3600, ChartStyle(rows=10))
    assert any(line.startswith("… and ") and "more rows" in line for line in lines)
    assert len(chart(view(hosts, jobs), NOW.timestamp(), NOW.timestamp() + 3600, ChartStyle(rows=0))) > 60


def test_the_axis_has_round_local_times_and_now() -> None:
    begin = NOW.timestamp() + 60
    texts = [text for _column, text in ticks_of(begin, begin + 3600, 60)]
    assert len(texts) >= 4
    assert all(re.fullmatch(r"\d\d:[0-5]0|[A-Z][a-z]{2} \d+ [A-Z][a-z]{2}|\d\d:\d\d", text) for text in texts)
    for span in (1, 90, 86_400, 40 * 86_400, 9 * 365 * 86_400, 1e10):
        assert 1 <= len(list(ticks_of(begin, begin + span, 60))) <= 7, span
    found = view([host("n1", "1")], [job(1, 0, 60, "1")])
    assert any("v now" in line for line in chart(found, *span_of(found, None, None), ChartStyle()))


def test_one_job_of_a_year_does_not_hide_the_others() -> None:
    found = view([host("n1", "1-2")], [job(n, n, n + 1, "1") for n in range(50)] + [job(99, 0, 500_000, "2")])
    _begin, end = span_of(found, None, None)
    assert end - NOW.timestamp() < 3600
    assert span_of(found, None, NOW.timestamp() + 7200)[1] == NOW.timestamp() + 7200


def test_jobs_that_share_are_both_seen() -> None:
    jobs = [job(7, 0, 30, "1", "running", "timesharing=*,*"), job(8, 10, 60, "1", "running", "timesharing=*,*")]
    found = view([host("n001", "1")], jobs)
    assert rows(found) == {"n001": "|7========" + "|7+8" + "*" * 16 + "|8" + "=" * 28}
    lines = chart(found, NOW.timestamp(), NOW.timestamp() + 3600, ChartStyle())
    assert "|ID+ID*** jobs that share" in " ".join(lines)


# ------------------------------------------------------------------ the command


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site_of(tmp_path_factory.mktemp("gantt")) as made:
        yield made


@pytest.fixture
def site(shared: Site) -> Iterator[Site]:
    yield shared
    shared.reset()


def test_without_a_plan_it_draws_what_runs_and_says_that_there_is_none(site: Site) -> None:
    out = site.ok("gantt")
    assert "0 running, 0 planned" in out
    assert "there is no plan" in out
    running = site.holds("--cpus", "2", "--mem", "10M", "--time", "10m")
    waiting = site.waits("--cpus", "4", "--mem", "10M")
    found = site.json("gantt")
    assert (found["plan"], [each["id"] for each in found["jobs"]]) == (False, [running])
    assert found["jobs"][0]["resources"] == "1-2"
    assert found["waiting_total"] == 1
    out = site.ok("gantt")
    assert f"|{running}=" in out
    assert re.search(rf"^  {waiting} +waiting for room: needs 4 cpus, 2 free", out, re.MULTILINE), out


def test_the_plan_as_json_and_on_the_screen(site: Site) -> None:
    running = site.holds("-l", "core=3,walltime=1h", "-n", "first")
    planned = site.waits("-l", "core=2,walltime=30m", "-t", "idempotent")
    site.only_reason(planned)
    homeless = site.waits("-t", "inner=999999", "-l", "core=1,walltime=5m")
    wait_until(lambda: site.json("gantt")["waiting"], "the third has been looked at")
    found = site.json("gantt")
    assert found["plan"]
    (here,) = found["hosts"]
    assert (here["resources"], here["state"], here["usable"], here["drain"]) == ("1-4", "alive", True, False)
    assert [(each["id"], each["state"], each["resources"]) for each in found["jobs"]] == [
        (running, "running", "1-3"),
        (planned, "ready", "1-2"),
    ]
    assert (found["jobs"][0]["name"], found["jobs"][1]["type"]) == ("first", ["idempotent"])
    assert found["jobs"][1]["start"] == found["jobs"][0]["end"]
    assert [(each["id"], each["code"]) for each in found["waiting"]] == [(homeless, "container")]
    out = site.ok("gantt", "--width", "100")
    assert "1 running, 1 planned, 1 without a planned start" in out
    assert f"|{running}==" in out
    assert f"|{planned}--" in out
    assert f"  {homeless:<6} its container 999999 is not there" in out
    assert "\x1b" not in out
    assert max(map(len, out.partition("without a planned start:")[0].splitlines())) <= 100
    assert site.ok("gantt", "--quiet").split() == [str(running), str(planned)]


def test_only_what_lies_within_the_times_asked_for(site: Site) -> None:
    running = site.holds("-l", "core=4,walltime=1h")
    planned = site.waits("-l", "core=4,walltime=30m")
    site.only_reason(planned)
    ids = [each["id"] for each in site.json("gantt", "--to", "now+10m")["jobs"]]
    assert ids == [running]
    ids = [each["id"] for each in site.json("gantt", "--from", "now+70m")["jobs"]]
    assert ids == [planned]
    limited = site.json("gantt", "--limit", "1")
    assert ([each["id"] for each in limited["jobs"]], limited["left_out"]) == ([running], 1)
    for options in (["--to", "2001-01-01"], ["--from", "now+2h", "--to", "now+1h"], ["--from", "soon"]):
        done = site.rota("gantt", *options)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
        assert "--" in done.stderr


@pytest.mark.parametrize(
    ("name", "begins"), [("p.svg", b"<?xml"), ("p.png", b"\x89PNG"), ("p.html", b"<!DOCTYPE")]
)
def test_a_picture_is_written(site: Site, tmp_path: Path, name: str, begins: bytes) -> None:
    job = site.holds("-l", "core=4,walltime=1h")
    assert site.ok("gantt", "--picture", str(tmp_path / name)) == f"drawn into {tmp_path / name}\n"
    data = (tmp_path / name).read_bytes()
    assert data.startswith(begins)
    if name != "p.png":
        assert f"{job} (".encode() in data


def test_a_picture_that_cannot_be_written(site: Site, tmp_path: Path) -> None:
    for path in (tmp_path / "p.gif", tmp_path / "no" / "p.svg", tmp_path):
        done = site.rota("gantt", "--picture", str(path))
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_hosts_without_a_runner_are_hatched(site: Site) -> None:
    site.ok("resource", "add", "--hosts", "away[1-3]", "--cores", "2")
    try:
        out = site.ok("gantt")
        assert re.search(r"^away\[1-3\] \(no runner\) [ !]*/+$", out, re.MULTILINE), out
    finally:
        site.ok("resource", "remove", "--hosts", "away[1-3]")


def test_without_a_manager_it_says_how_to_start_one(rota: Deployment) -> None:
    done = rota.rota("gantt")
    assert done.returncode == 4
    assert "rota manager start" in done.stderr


def test_what_is_planned_outside_the_window_is_not_without_a_plan(site: Site) -> None:
    site.holds("-l", "core=4,walltime=1h")
    planned = site.waits("-l", "core=4,walltime=1h")
    site.only_reason(planned)
    out = site.ok("gantt", "--to", "now+5m")
    assert "1 running, 0 planned, 1 later" in out
    assert "without a planned start" not in out
    assert "0 running, 1 planned, 1 over before" in site.ok("gantt", "--from", "now+90m", "--to", "now+100m")
