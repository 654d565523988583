"""Figures for monitoring: in the format that Prometheus reads, and true."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf'({_NAME})(?:\{{((?:{_NAME}="(?:[^"\\\n]|\\["\\n])*",?)*)\}})? (\S+)')
_LABEL = re.compile(rf'({_NAME})="((?:[^"\\\n]|\\["\\n])*)"')
_DOCS = Path(__file__).parents[2] / "docs"
_SHIPPED = [_DOCS / "monitoring" / name for name in ("alerts.yml", "alerts_test.yml", "dashboard.json")]
_KINDS = {"counter", "gauge", "histogram", "summary", "untyped"}


def parse(text: str) -> dict[str, dict[frozenset[Any], float]]:
    """All samples by name and labels. Refuses what Prometheus would, and a bit more."""
    assert text.endswith("\n")
    found: dict[str, dict[frozenset[Any], float]] = {}
    about: dict[str, set[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("# "):
            kind, name, rest = line[2:].split(" ", 2)
            assert kind in ("HELP", "TYPE"), line
            assert kind not in about.setdefault(name, set()), f"{line}: told twice"
            assert kind == "HELP" or rest in _KINDS, line
            assert name not in found, f"{line}: after its samples"
            about[name].add(kind)
            continue
        sample = _SAMPLE.fullmatch(line)
        assert sample is not None, line
        own = {name, *(name + end for end in ("_bucket", "_sum", "_count"))}
        assert sample[1] in own, f"{line}: samples of one metric stand together, after what is said of it"
        assert about[name] == {"HELP", "TYPE"}, line
        labels = frozenset(_LABEL.findall(sample[2] or ""))
        assert labels not in found.setdefault(sample[1], {}), f"{line}: told twice"
        found[sample[1]][labels] = float(sample[3])
    return found


def _metrics(site) -> dict[str, dict[str, float]]:
    """By name and the value of the only label."""
    answer = site.user.get("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return {
        name: {next((value for _name, value in labels), ""): number for labels, number in samples.items()}
        for name, samples in parse(answer.body.decode()).items()
    }


def test_the_parser_refuses_what_is_wrong():
    good = "# HELP a x\n# TYPE a gauge\na 1.0\n"
    assert parse(good) == {"a": {frozenset(): 1.0}}
    for bad in (
        "a 1\n",
        good + "a 1.0\n",
        good[:-1],
        good.replace("gauge", "thing"),
        good + 'a{x="\n"} 1\n',
        good + "\n",
    ):
        with pytest.raises((AssertionError, KeyError)):
            parse(bad)


def test_both_places_tell_the_same(site):
    one, other = (parse(site.user.get(path).body.decode()) for path in ("/metrics", "/api/v1/metrics"))
    assert one.keys() == other.keys()


def test_counts_are_true(site):
    before = _metrics(site)
    ids = site.add("true", "true", "sleep 0.3", rerun=True)
    bad = site.add("false", retries=0)
    again = site.add("false", retries=1, backoff="0.1s")
    site.rota.rota("wait", *map(str, [*ids, *bad, *again]))
    after = _metrics(site)

    def more(name: str, label: str = "") -> float:
        return after[name].get(label, 0.0) - before.get(name, {}).get(label, 0.0)

    assert (more("rota_jobs", "complete"), more("rota_jobs", "failed")) == (3, 2)
    assert (more("rota_jobs_ended_total", "complete"), more("rota_jobs_ended_total", "failed")) == (3, 2)
    assert more("rota_started_total") == 6
    assert more("rota_commits_total") >= 3
    assert more("rota_cpu_seconds_total") > 0
    assert after["rota_jobs"] == site.user.get("/api/v1/status").json["counts"]


_LATENCIES = ("rota_commit_seconds", "rota_decision_seconds", "rota_plan_seconds", "rota_wait_seconds")


def test_latencies_are_measured(site):
    ids = [*site.add("true"), *site.add("true", request="core=1,walltime=1m")]  # the second one needs a plan
    site.rota.ok("wait", *map(str, ids))
    found = _metrics(site)
    for name in _LATENCIES:
        assert set(found[name]) == {"0.5", "0.9", "0.99"}
        assert 0 <= found[name]["0.5"] <= found[name]["0.9"] <= found[name]["0.99"] < 60


def test_the_manager_is_described(site):
    found = _metrics(site)
    view = site.user.get("/api/v1/manager").json
    assert found["rota_runners"] == {"": len([each for each in view["runners"] if each["connected"]])}
    assert found["rota_paused"] == found["rota_disk_full"] == found["rota_safe_mode"] == {"": 0.0}
    assert {"request", "report", "effect", "timer"} < found["rota_bugs_total"].keys()
    assert set(found["rota_bugs_total"].values()) == {0.0}
    assert found["rota_resident_bytes"][""] > 1 << 20
    assert found["rota_connections"][""] >= 1
    with site.user.events() as stream:
        stream.wait(lambda events: events, "the stream is open")
        assert _metrics(site)["rota_gateway_streams"] == {"": 1.0}


def test_figures_are_not_for_everybody(site):
    for path in ("/metrics", "/api/v1/metrics"):
        assert site.nobody.get(path).status == 401


# ------------------------------------------------------------------ as Prometheus has it


def promtool(*words: str, input: str = "") -> None:
    """Fails with what promtool says if it says anything against it."""
    found = shutil.which("promtool") or str(Path(__file__).parents[2] / ".venv" / "bin" / "promtool")
    assert Path(found).exists(), "there is no promtool; 'make test' fetches it (tools/need-promtool)"
    done = subprocess.run([found, *words], input=input, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def samples(site, name: str) -> dict[frozenset[Any], float]:
    return parse(site.user.get("/metrics").body.decode())[name]


def test_promtool_has_nothing_against_them(site):
    site.rota.ok("wait", *map(str, site.add("true", request="core=1,walltime=1m", rerun=True)))
    promtool("check", "metrics", input=site.user.get("/metrics").body.decode())


def test_the_alerts_that_ship_are_right_and_go_off_when_they_should():
    promtool("check", "rules", str(_SHIPPED[0]))
    promtool("test", "rules", str(_SHIPPED[1]))


def test_every_query_of_the_dashboard_can_be_read(tmp_path):
    panels = json.loads(_SHIPPED[2].read_text())["panels"]
    queries = [each["expr"].replace("$instance", ".*") for panel in panels for each in panel["targets"]]
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(queries)]
    file = tmp_path / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    promtool("check", "rules", str(file))


@pytest.mark.parametrize("path", [*_SHIPPED, _DOCS / "monitoring.md"], ids=lambda path: path.name)
def test_what_ships_names_no_metric_that_there_is_not(site, path):
    site.rota.ok("limit", "shipped:1")
    site.rota.ok("quota", "set", "*,*,*,/", "1000")
    try:
        there = set(re.findall(r"^# TYPE (rota_\w+)", site.user.get("/metrics").body.decode(), re.M))
    finally:
        site.rota.ok("quota", "remove", "*,*,*,/")
    text = path.read_text()
    if path.suffix == ".json":
        text = json.dumps([each["expr"] for panel in json.loads(text)["panels"] for each in panel["targets"]])
    named = {re.sub("_(bucket|sum|count)$", "", name) for name in re.findall(r"\brota_[a-z_]+[a-z]", text)}
    assert named
    assert named <= there, "nobody would notice that an alert never goes off"


def test_every_metric_is_documented(site):
    there = set(re.findall(r"^# TYPE (rota_\w+)", site.user.get("/metrics").body.decode(), re.M))
    text = (_DOCS / "monitoring.md").read_text()
    assert [name for name in there if f"`{name}" not in text] == []


def test_a_blocked_job_has_not_ended(site):
    (bad,) = site.add("false", retries=0, rerun=True)
    (child,) = site.add("echo child of a bad one", after=[str(bad)])
    site.rota.rota("wait", str(bad))
    site.rota.ok("show", str(child))
    ended = samples(site, "rota_jobs_ended_total")
    assert frozenset({("state", "blocked")}) not in ended
    site.rota.ok("kill", str(child))


def test_queues_limits_and_cores_are_told(site):
    site.rota.ok("limit", "never:0")
    (job,) = site.add("true", limits=["never"], rerun=True)
    site.rota.ok("queue", "close", "besteffort")
    try:
        closed = samples(site, "rota_queue_closed")
        waiting = samples(site, "rota_queue_jobs")
        assert samples(site, "rota_limit_waiting_jobs")[frozenset({("limit", "never")})] == 1
    finally:
        site.rota.ok("queue", "open", "besteffort")
        site.rota.ok("kill", str(job))
    assert closed == {
        frozenset({("queue", name)}): float(name == "besteffort") for name in ("admin", "default", "besteffort")
    }
    assert waiting[frozenset({("queue", "default"), ("state", "waiting")})] >= 1
    view = site.user.get("/api/v1/nodes").json
    assert samples(site, "rota_capacity_cores") == {frozenset(): sum(each["cores"] for each in view)}
    (version,) = samples(site, "rota_build_info")
    assert dict(version) == {"version": site.user.get("/api/v1/manager").json["version"]}


def test_a_limit_that_jobs_declared_is_told_only_while_it_is_wanted(site):
    site.rota.ok("limit", "never:0")
    (job,) = site.add("true", limits=["passing:3", "never"], rerun=True)
    of_it = frozenset({("limit", "passing")})
    assert samples(site, "rota_limit_waiting_jobs")[of_it] == 1
    site.rota.ok("kill", str(job))
    assert of_it not in samples(site, "rota_limit_used"), "users can declare as many as they like"
    assert frozenset({("limit", "never")}) in samples(site, "rota_limit_used")


def test_buckets_of_a_histogram_add_up(site):
    site.rota.ok("wait", *map(str, site.add("true", rerun=True)))
    found = parse(site.user.get("/metrics").body.decode())
    for name in ("rota_commit_duration_seconds", "rota_job_wait_seconds"):
        by_bound = {float(dict(labels)["le"]): number for labels, number in found[f"{name}_bucket"].items()}
        counts = [by_bound[bound] for bound in sorted(by_bound)]
        assert counts == sorted(counts)
        assert counts[-1] == found[f"{name}_count"][frozenset()] > 0
