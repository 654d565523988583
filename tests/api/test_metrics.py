"""Figures for monitoring: in the format that Prometheus reads, and true."""

from __future__ import annotations

import re
from typing import Any

import pytest

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf'({_NAME})(?:\{{((?:{_NAME}="(?:[^"\\\n]|\\["\\n])*",?)*)\}})? (\S+)')
_LABEL = re.compile(rf'({_NAME})="((?:[^"\\\n]|\\["\\n])*)"')
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
        assert sample[1] == name, f"{line}: samples of one metric stand together, after what is said of it"
        assert about[name] == {"HELP", "TYPE"}, line
        labels = frozenset(_LABEL.findall(sample[2] or ""))
        assert labels not in found.setdefault(name, {}), f"{line}: told twice"
        found[name][labels] = float(sample[3])
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
    assert found["rota_paused"] == found["rota_disk_full"] == {"": 0.0}
    assert found["rota_resident_bytes"][""] > 1 << 20
    assert found["rota_connections"][""] >= 1
    with site.user.events() as stream:
        stream.wait(lambda events: events, "the stream is open")
        assert _metrics(site)["rota_gateway_streams"] == {"": 1.0}


def test_figures_are_not_for_everybody(site):
    for path in ("/metrics", "/api/v1/metrics"):
        assert site.nobody.get(path).status == 401
