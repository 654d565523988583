"""`rota gantt --from` in the past: what ran, and what hosts did."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest

from rota.cli.render.chart_style import ChartStyle
from rota.cli.render.gantt_text import chart, span_of
from rota.cli.render.text import cells
from rota.wire.gantt import GanttAttempt, GanttMerged, GanttPast, GanttState, GanttView
from tests.cli.commands.reports.test_gantt import NOW, host, job, view
from tests.cli.planned import Site, moment, site_of
from tests.deployment import wait_until


def ago(minutes: float) -> timedelta:
    return timedelta(minutes=-minutes)


def attempt(
    id: int, start: float, end: float, lines: list[tuple[str, str]], state: str = "complete"
) -> GanttAttempt:
    """From so many minutes ago to so many minutes ago."""
    return GanttAttempt(
        id=id, attempt=1, name="", user="ann", project="", queue="default", group="g", state=state, type=[],
        start=NOW + ago(start), end=NOW + ago(end), host="n001", cores=1.0, resources=None, lines=lines,
        exact=True,
    )  # fmt: skip


def state(start: float, end: float, what: str, name: str = "n001") -> GanttState:
    return GanttState(host=name, start=NOW + ago(start), end=NOW + ago(end), state=what)


def past(found: GanttView, **fields: object) -> GanttView:
    known = {"attempts": [], "merged": [], "slice_s": None, "states": [], "lines": {}, "total": 0, "removed": 0}
    found.past = GanttPast(until=NOW, **{**known, **fields})  # type: ignore[arg-type]
    return found


def rows(found: GanttView, *, look: ChartStyle | None = None) -> list[str]:
    """What is drawn of the hour up to now, one column a minute."""
    end = NOW.timestamp()
    lines = chart(found, end - 3600, end, look or ChartStyle(width=65))
    return [line[-60:] for line in lines[2:] if len(line) == 65]


def test_what_ended_is_drawn_from_start_to_end_and_what_failed_looks_different() -> None:
    ended = [attempt(7, 60, 50, [("n001", "0")]), attempt(8, 30, 20, [("n001", "0")], "failed")]
    found = past(view([host("n001", "1")], []), attempts=ended)
    assert rows(found) == ["|7________" + "·" * 20 + "|8xxxxxxxx" + "·" * 20]
    text = "\n".join(chart(found, NOW.timestamp() - 3600, NOW.timestamp(), ChartStyle()))
    assert "|ID___ ended" in text
    assert "|IDxxx failed or killed" in text


def test_an_attempt_is_on_the_cores_that_it_had() -> None:
    found = past(view([host("n001", "5-6")], []), attempts=[attempt(7, 60, 0, [("n001", "1")])])
    end = NOW.timestamp()
    drawn = chart(found, end - 3600, end, ChartStyle(width=67))[2:4]
    assert [line.split()[1] for line in drawn] == ["5", "6"]
    assert drawn[1].endswith("|7" + "_" * 58)


def test_conditions_are_bands_and_the_one_of_now_goes_on() -> None:
    states = [state(60, 40, "broken"), state(40, 20, "manual"), state(20, 0, "removed")]
    broken = host("n001", "1", usable=False, condition="broken")
    found = past(view([broken], []), states=states)
    end = NOW.timestamp()
    lines = chart(found, end - 3600, end + 1200, ChartStyle(width=94))
    assert lines[2] == "n001 (broken) " + "b" * 20 + "m" * 20 + "-" * 20 + "b" * 20
    assert "mmm manual  bbb broken  --- removed" in "  ".join(lines[-2:])


def test_what_a_host_did_has_its_own_sign_and_what_nobody_knows_is_empty() -> None:
    states = [
        state(60, 50, "unknown"), state(50, 40, "drained"), state(40, 30, "away"), state(30, 20, "asleep"),
        state(20, 10, "closed"), state(10, 5, "unseen"),
    ]  # fmt: skip
    found = past(view([host("n001", "1")], []), states=states)
    assert rows(found) == [" " * 10 + "d" * 10 + "!" * 10 + "z" * 10 + "c" * 10 + " " * 5 + "·" * 5]
    text = "\n".join(chart(found, NOW.timestamp() - 3600, NOW.timestamp(), ChartStyle()))
    for words in ("ddd drained", "!!! down", "zzz asleep", "ccc closed", "(empty) not known"):
        assert words in text


def test_a_host_that_may_not_be_used_now_was_not_always_so() -> None:
    found = past(view([host("n001", "1", usable=False, drain=True)], []), states=[state(10, 0, "drained")])
    end = NOW.timestamp()
    (line,) = (line for line in chart(found, end - 1800, end + 1800, ChartStyle()) if line.startswith("n001"))
    assert re.fullmatch(r"n001 \(drain\) ·+d+/+", line), line


def test_too_many_attempts_are_drawn_as_how_much_of_a_host_was_in_use() -> None:
    merged = [
        GanttMerged(host="n001", start=NOW + ago(60), end=NOW + ago(30), cores=2.0, attempts=900, failed=0),
        GanttMerged(host="n001", start=NOW + ago(30), end=NOW, cores=0.1, attempts=9, failed=1),
    ]
    found = past(view([host("n001", "1-2")], []), merged=merged, slice_s=1800.0, total=909)
    assert rows(found) == ["█" * 30 + "▁" * 30]
    assert rows(found, look=ChartStyle(width=65, plain=True)) == ["8" * 30 + "1" * 30]


def test_a_host_that_is_gone_has_its_rows() -> None:
    hosts = [host("n001", "1"), host("n002", "", state="gone", usable=False)]
    found = past(view(hosts, []), attempts=[attempt(7, 60, 0, [("n002", "0-1")])], lines={"n002": 2})
    lines = chart(found, NOW.timestamp() - 3600, NOW.timestamp(), ChartStyle())
    assert any(re.match(r"n002 \(gone\) \|7_+", line) for line in lines), lines


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    states = [state(50, 40, "drained"), state(40, 30, "away"), state(30, 20, "asleep"), state(20, 10, "closed")]
    ended = [attempt(n, n, n - 1, [("n001", "0")], "failed" if n % 2 else "complete") for n in range(1, 50)]
    found = past(view([host("n001", "1")], []), states=states, attempts=ended)
    for look in (ChartStyle(width=width), ChartStyle(width=width, plain=True)):
        lines = chart(found, NOW.timestamp() - 3600, NOW.timestamp(), look)
        assert max(cells(line) for line in lines) <= width
        assert look.plain <= all(line.isascii() for line in lines)


def test_who_asks_for_the_past_sees_it_up_to_now_and_a_little_more() -> None:
    found = view([host("n001", "1")], [job(1, 0, 600, "1", "running")])
    now = NOW.timestamp()
    assert span_of(found, now - 900, None) == (now - 900, now + 300)
    assert span_of(found, now - 900, now - 60) == (now - 900, now - 60)


# ------------------------------------------------------------------ the command


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site_of(tmp_path_factory.mktemp("past")) as made:
        yield made


def test_what_ran_is_in_the_picture_and_a_restart_is_no_downtime(site: Site) -> None:
    assert "ended" not in site.ok("gantt", "--from", "-15m").splitlines()[0]
    good = site.add("-n", "good", "--cpus", "2", "--mem", "10M", "--", "true")
    bad = site.add("--mem", "10M", "--retries", "0", "--", "false")
    site.until("complete", good)
    site.until("failed", bad)
    planned = site.add("-l", "core=3,walltime=1m", "--", "true")
    site.until("complete", planned)
    (here,) = site.json("gantt")["hosts"]
    site.ok("node", "set", here["host"], "--drain")
    wait_until(
        lambda: any(each["state"] == "drained" for each in site.json("gantt", "--from", "-15m")["past"]["states"]),
        "it is written down that it is drained",
    )
    site.ok("node", "set", here["host"], "--no-drain")
    site.ok("manager", "stop")
    site.start()
    wait_until(lambda: site.json("manager", "status")["runners"], "the runner is back")
    found = site.json("gantt", "--from", "-15m")
    shown = [site.json("show", str(each)) for each in (good, bad, planned)]
    by_id = {each["id"]: each for each in found["past"]["attempts"]}
    for each in shown:
        assert by_id[each["id"]]["start"] == each["started_at"]
        assert by_id[each["id"]]["end"] == each["ended_at"]
    assert (by_id[good]["name"], by_id[good]["state"], by_id[good]["cores"]) == ("good", "complete", 2.0)
    assert (by_id[bad]["state"], by_id[bad]["exact"]) == ("failed", False)
    assert by_id[planned]["exact"]
    assert by_id[planned]["lines"] == [[here["host"], "0-2"]]
    states = [each["state"] for each in found["past"]["states"]]
    assert "drained" in states
    assert "away" not in states[states.index("drained") :], "a restart is no downtime"
    out = site.ok("gantt", "--from", "-15m", "--width", "100")
    assert "3 ended, 0 running, 0 planned" in out
    assert "|IDxxx failed or killed" in out
    begin = moment(by_id[good]["start"])
    before = ["--from", f"@{begin - 9:.0f}", "--to", f"@{begin - 8:.0f}"]
    assert site.json("gantt", *before)["past"]["attempts"] == []
    merged = site.json("gantt", "--from", "-15m", "--limit", "1")["past"]
    assert merged["attempts"] == []
    assert merged["total"] == 3
    assert merged["slice_s"] > 0
    used = sum(each["cores"] for each in merged["merged"]) * merged["slice_s"]
    sums = site.json("accounting", "--from", "-1d")["rows"]
    assert used == pytest.approx(sum(row["used_s"] for row in sums), abs=0.01)
    assert "too many to draw" in site.ok("gantt", "--from", "-15m", "--limit", "1")
    site.ok("remove", str(bad))
    assert site.json("gantt", "--from", "-15m")["past"]["removed"] == 1
    assert "1 attempt of these hours are not drawn" in site.ok("gantt", "--from", "-15m")


def test_without_a_past_asked_for_there_is_none_and_a_time_that_is_none_is_refused(site: Site) -> None:
    assert site.json("gantt")["past"] is None
    assert site.json("gantt", "--from", "now+1h")["past"] is None
    for options in (["--from", "-"], ["--from", "-5"], ["--to", "-5m"], ["--from", "-1h", "--to", "-2h"]):
        done = site.rota("gantt", *options)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
