"""What a trace of a site may say, and how one that is wrong is refused: with the path of the field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rota.errors import BadInput
from rota.sim.site_run import simulate
from rota.sim.trace import Trace, read_trace
from tests.dose import dose, half
from tests.sim.sites import P5, P32, job, plan, run

ROW = {"ids": "1-4", "host": "n1"}


def _read(document: dict[str, Any], **rest: Any) -> Trace:
    return read_trace(json.dumps({"resources": [ROW]} | document).encode(), **rest)


def _refusal(document: dict[str, Any]) -> str:
    with pytest.raises(BadInput) as caught:
        _read(document)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def _refused_job(**fields: Any) -> str:
    return _refusal({"jobs": [{"id": 1}, {"id": 2} | fields]})


# -- resources


@pytest.mark.parametrize("ids", ["1-3,7", [1, 2, 3, 7]])
def test_ids_are_ranges_or_lists(ids: object) -> None:
    site = _read({"resources": [{"ids": ids, "host": "a"}, {"ids": 9, "host": "b"}]}).site
    assert site.spans(site.everything) == "1-3,7,9"


def test_a_property_of_numbers_is_a_number_and_one_of_mixed_values_is_text() -> None:
    rows = [
        {"ids": 1, "host": "a", "mem": 64, "gpu": True, "rack": 1},
        {"ids": 2, "host": "b", "mem": 128, "gpu": False, "rack": "x"},
    ]
    kinds = _read({"resources": rows}).site.kinds
    assert (kinds["mem"], kinds["gpu"], kinds["rack"]) == ("integer", "yesno", "text")
    found = plan(
        rows,
        job("core=1,walltime=9s", where="mem > 64"),
        job("core=1,walltime=9s", where="gpu = yes"),
        job("core=1,walltime=9s", where="rack = '1'"),
    )
    assert [found.place(id) for id in (1, 2, 3)] == [(0, "2"), (0, "1"), (9, "1")]


def test_words_that_say_something_about_the_resource_are_not_properties() -> None:
    site = _read({"resources": [ROW | {"state": "alive", "drain": False, "available_until": 10}]}).site
    assert site.kinds.keys() == {"host", "core"}


def test_nodes_is_another_word_for_host_in_rows_and_levels() -> None:
    found = plan([{"ids": "1-2", "nodes": "a"}], job("host=1,walltime=1m"), levels=["nodes", "core"])
    assert found.place(1) == (0, "1-2")


def test_without_hosts_a_number_of_processors_is_taken_anywhere() -> None:
    found = plan([{"ids": "1-4"}], {"cpus": 3, "time": 60}, {"walltime": 60})
    assert [found.place(id) for id in (1, 2)] == [(0, "1-3"), (0, "4")]


def test_a_unit_of_another_name_is_what_processors_are() -> None:
    rows = [{"ids": "1-4", "host": "a"}]
    found = plan(rows, {"cpus": 3, "time": 60}, job("walltime=60s"), levels=["host", "slot"])
    assert [found.place(id) for id in (1, 2)] == [(0, "1-3"), (0, "4")]


def test_processors_of_one_job_are_on_one_host() -> None:
    found = plan(P5, {"cpus": 1, "time": 60}, {"cpus": 2, "time": 60}, {"cpus": 3, "time": 60})
    assert [found.place(id) for id in (1, 2)] == [(0, "1"), (0, "3-4")]
    assert found.code(3) == "unsatisfiable"


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ([], "resources: there are none"),
        ([ROW, {"ids": "4-5"}], "resources[1].ids: 4 is given twice"),
        ([{"host": "a"}], "resources[0].ids: it names no resources"),
        ([{"ids": "x"}], "resources[0].ids: 'x'"),
        ([{"ids": -1}], "resources[0].ids: -1"),
        ([{"ids": True}], "resources[0].ids: it names no resources"),
        ([ROW | {"state": "alife"}], "resources[0].state: there is no state 'alife'; did you mean 'alive'?"),
        ([ROW | {"drain": "yes"}], "resources[0].drain: 'yes' is neither true nor false"),
        ([ROW | {"available_until": "soon"}], "resources[0].available_until: 'soon' is not a time"),
        ([ROW | {"speed": 1.5}], "resources[0].speed: 1.5 is not a value"),
        ([ROW | {"a b": 1}], "resources[0]: 'a b' cannot be the name of a property"),
    ],
)
def test_a_bad_row_is_named(resources: list[dict[str, Any]], message: str) -> None:
    assert message in _refusal({"resources": resources})


def test_levels_that_no_row_has_are_refused() -> None:
    assert "levels[0]: no resource has a 'swicth'; did you mean 'switch'?" in _refusal(
        {"resources": [ROW | {"switch": "s1"}], "levels": ["swicth", "host", "core"]}
    )
    assert "levels: there are none" in _refusal({"levels": []})
    assert "levels[1]: 'host' is given twice" in _refusal({"levels": ["host", "nodes", "core"]})


def test_figures_of_a_host_are_sizes_and_numbers() -> None:
    hosts = {"n1": {"mem": "64G", "disk": 1000, "gpus": 2, "limits": {"bigmem": 2}}}
    figures = _read({"hosts": hosts}).site.figures["n1"]
    assert (figures.mem, figures.disk, figures.gpus, figures.limits) == (64 << 30, 1000, 2, {"bigmem": 2})
    assert "hosts.n2: no resource is on 'n2'; the hosts are n1" in _refusal({"hosts": {"n2": {}}})
    assert "hosts.n1: there is no 'memm' here; did you mean 'mem'?" in _refusal({"hosts": {"n1": {"memm": 1}}})
    assert "hosts.n1.mem: " in _refusal({"hosts": {"n1": {"mem": "lots"}}})


# -- policy


def test_without_queues_there_are_the_usual_ones() -> None:
    queues = _read({}).policy.queues
    assert {name: queue.priority for name, queue in queues.items()} == {"admin": 10, "default": 2, "besteffort": 0}
    assert {queue.backfill for queue in queues.values()} == {"conservative"}
    assert {queue.order for queue in queues.values()} == {"fifo"}


def test_a_policy_is_that_of_every_queue_that_does_not_say() -> None:
    queues = _read(
        {
            "policy": "fcfs",
            "queues": {
                "fast": {"priority": 5, "policy": "easy", "walltime": "1h", "max_wait": 60},
                "fair": {"policy": "fairshare", "shares": {"ann": 0.5}},
            },
        }
    ).policy.queues
    assert {name: queue.backfill for name, queue in queues.items()} == {
        "admin": "none",
        "default": "none",
        "besteffort": "none",
        "fast": "easy",
        "fair": "none",
    }
    assert queues["fair"].order == "fairshare"
    assert queues["default"].order == "fifo"
    assert (queues["fast"].walltime_s, queues["fast"].max_wait_s) == (3600, 60)
    assert queues["fair"].shares == {"ann": 0.5}


def test_a_policy_may_be_the_name_of_an_order() -> None:
    assert _read({"policy": "multifactor"}).policy.queues["default"].order == "multifactor"
    default = _read({"policy": "easy", "order": "fairshare"}).policy.queues["default"]
    assert (default.order, default.backfill) == ("fairshare", "easy")


def test_where_use_is_given_and_no_order_the_order_is_fair_share() -> None:
    assert _read({"usage": {"ann": 5}}).policy.queues["default"].order == "fairshare"
    assert _read({"usage": {"ann": 5}, "order": "fifo"}).policy.queues["default"].order == "fifo"


def test_the_policy_of_the_command_line_replaces_all() -> None:
    document = {
        "order": "fairshare",
        "policy": "easy",
        "queues": {"default": {"policy": "fcfs", "order": "fairshare"}},
    }
    for queue in _read(document, policy="easy-sjbf").policy.queues.values():
        assert (queue.order, queue.backfill) == ("fifo", "easy-sjbf")
    with pytest.raises(BadInput, match="there is no policy 'esay'; did you mean 'easy'"):
        _read({}, policy="esay")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"policy": "conservativ"}, "policy: there is no policy 'conservativ'; did you mean 'conservative'?"),
        ({"order": "fair"}, "order: there is no order 'fair'"),
        ({"queues": {"q": {"priorty": 1}}}, "queues.q: there is no 'priorty' here; did you mean 'priority'?"),
        ({"queues": {"q": {"priority": "high"}}}, "queues.q.priority: expected 'int', got 'str'"),
        ({"queues": {"q": {"backfill": "no"}}}, "queues.q.backfill: there is no backfill 'no'"),
        ({"queues": {"q": {"walltime": 0}}}, "queues.q.walltime: 0 leaves no time"),
        ({"queues": {"q": {"shares": {"ann": 0}}}}, "queues.q.shares.ann: 0 is not a share"),
        ({"queues": []}, "queues: expected 'object | null', got 'array'"),
        ({"usage": {"ann": -1}}, "usage.ann: -1 is negative"),
        ({"timezone": "Europe/Pariss"}, "timezone: 'Europe/Pariss' is not a time zone"),
        ({"epoch": "yesterday"}, "epoch: 'yesterday' is not a time"),
        ({"job": []}, "there is no 'job' here; did you mean 'jobs'?"),
        ({"quotas": {"*,*": [1, 1, 1]}}, "quotas: "),
        ({"calendar": {"periodical": [["08:00-19:00", "day"]]}}, "calendar: "),
    ],
)
def test_a_bad_field_of_the_site_is_named(document: dict[str, Any], message: str) -> None:
    assert message in _refusal(document)


# -- jobs


def test_times_are_numbers_or_text() -> None:
    document = {
        "epoch": "2026-01-05T00:00:00",
        "timezone": "Europe/Paris",
        "jobs": [
            {"id": 1, "submit": "2026-01-05T01:00:00", "walltime": "2m", "run": "90s", "at": 7200},
            {"id": 2, "submit": "2026-01-05T01:00:00+00:00", "time": 5},
        ],
    }
    one, two = _read(document).jobs
    assert (one.submit, one.run_s, one.ask.at, one.ask.alternatives[0].walltime_s) == (3600, 90, 7200, 120)
    assert (two.submit, two.run_s, two.ask.time_s) == (7200, None, 5)


def test_the_walltime_of_a_request_wins_over_that_of_the_job_and_that_over_the_queues() -> None:
    document = {
        "queues": {"default": {"walltime": "3h"}},
        "jobs": [
            {"id": 1, "request": ["core=1,walltime=1h", "core=2"], "walltime": "2h"},
            {"id": 2, "request": "core=1"},
        ],
    }
    one, two = _read(document).jobs
    assert [each.walltime_s for each in one.ask.alternatives] == [3600, 7200]
    assert [each.walltime_s for each in two.ask.alternatives] == [10_800]


def test_a_condition_of_the_job_holds_for_every_group() -> None:
    rows = [{"ids": "1-4", "host": "a", "gpu": "YES"}, {"ids": "5-8", "host": "b", "gpu": "NO"}]
    found = plan(rows, job("{core > 2 or core = 1}/core=1+core=1,walltime=1m", where="gpu='NO' or core=4"))
    assert found.place(1) == (0, "4-5")


def test_besteffort_jobs_and_their_queue_belong_together() -> None:
    one, two = _read({"jobs": [{"id": 1, "type": "besteffort"}, {"id": 2, "queue": "besteffort"}]}).jobs
    assert (one.ask.queue, two.ask.types.besteffort) == ("besteffort", True)


def test_fields_that_change_nothing_in_a_plan_may_be_there() -> None:
    assert len(_read({"jobs": [{"id": 1, "cmd": "sleep 5", "checkpoint": "30s"}]}).jobs) == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"request": ["core=1", "nodse=2"]},
            "jobs[1].request[1]: unknown level 'nodse' at column 1; did you mean 'nodes'",
        ),
        ({"request": "core=1,walltime=0"}, "jobs[1].request: "),
        ({"request": []}, "jobs[1].request: it is empty"),
        ({"request": "core=1", "cpus": 2}, "jobs[1].cpus: it has a request as well"),
        ({"request": 5}, "jobs[1].request: expected 'str | array | null', got 'int'"),
        ({"where": "gpu='YES'"}, "jobs[1].where: "),
        ({"where": "host='"}, "jobs[1].where: "),
        ({"cpus": -1}, "jobs[1].cpus: -1"),
        ({"cpus": 0.004}, "jobs[1].cpus: 0.004"),
        ({"array": "1-10"}, "jobs[1]: there is no field 'array'"),
        ({"usr": "ann"}, "jobs[1]: there is no field 'usr'; did you mean 'user'?"),
        ({"id": 1}, "jobs[1].id: 1 is that of jobs[0] as well"),
        ({"id": "2"}, "jobs[1].id: expected 'int', got 'str'"),
        ({"submit": "x"}, "jobs[1].submit: 'x' is not a time"),
        ({"submit": 1e12}, "jobs[1].submit: 1e+12 is too far away"),
        ({"run": -1}, "jobs[1].run: -1"),
        ({"walltime": 0}, "jobs[1].walltime: 0 leaves no time to run"),
        ({"walltime": "90"}, "jobs[1].walltime: '90' has no unit"),
        ({"mem": "lots"}, "jobs[1].mem: 'lots' is not a size"),
        ({"gpus": -1}, "jobs[1].gpus: -1 is negative"),
        ({"priority": 256}, "jobs[1].priority: 256 is out of range"),
        ({"queue": "defualt"}, "jobs[1].queue: there is no queue 'defualt'; did you mean 'default'?"),
        ({"type": ["besteffrot"]}, "jobs[1].type: "),
        ({"type": ["deadline=soon"]}, "jobs[1].type: "),
        ({"type": "besteffort", "at": 5}, "jobs[1].at: a besteffort job"),
        ({"type": "inner=1", "at": 5}, "jobs[1].at: "),
        ({"after": [3]}, "jobs[1].after: there is no job 3"),
        ({"after": "soon"}, "jobs[1].after: 'soon' is not a job"),
        ({"after": "afterwards:1"}, "jobs[1].after: 'afterwards:1' is not a job"),
        ({"after": [2]}, "jobs[1].after: jobs wait for each other: 2 → 2"),
        ({"start": 0}, "jobs[1].resources: missing"),
        ({"resources": "1"}, "jobs[1].start: missing"),
        ({"start": 5, "resources": "1"}, "jobs[1].start: 5 is in the future"),
        ({"start": 0, "resources": "1-9"}, "jobs[1].resources: there is no resource 5"),
        ({"limits": ["lic"]}, "jobs[1].limits: there is no limit 'lic'"),
        ({"limits": ["a b"]}, "jobs[1].limits: 'a b' is not a limit"),
    ],
)
def test_a_bad_field_of_a_job_is_named(fields: dict[str, Any], message: str) -> None:
    assert message in _refused_job(**fields)


def test_a_job_that_is_not_an_object_is_named() -> None:
    assert "jobs[0]: it is not an object" in _refusal({"jobs": [5]})
    assert "jobs[0]: object missing required field 'id'" in _refusal({"jobs": [{}]})


def test_jobs_that_wait_for_each_other_are_refused() -> None:
    jobs = [{"id": 1, "after": [3]}, {"id": 2, "after": [1]}, {"id": 3, "after": [2]}, {"id": 4, "after": [1]}]
    assert "jobs wait for each other: 1 → 3 → 2 → 1" in _refusal({"jobs": jobs})


def test_a_long_chain_of_dependencies_is_read() -> None:
    jobs = [{"id": n, "after": [n + 1]} for n in range(5000)] + [{"id": 5000}]
    assert len(_read({"jobs": jobs}).jobs) == 5001


def test_running_jobs_hold_different_resources() -> None:
    one, two = ({"id": n, "start": 0, "resources": "2-3"} for n in (1, 2))
    assert "jobs[1].resources: some are held by another running job" in _refusal({"jobs": [one, two]})


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"nul", b"\xff", b'{"resources": 5}', b"[" * 100_000])
def test_what_is_not_a_trace_is_refused(text: bytes) -> None:
    with pytest.raises(BadInput):
        simulate(text, plan_only=False)


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = (
    "id submit request cpus mem gpus disk time walltime where run user queue priority type at after "
    "start resources limits exit retries retry_on backoff gang gang_same gang_share on_member_failure prefer "
    "force_host provision provision_fails reserve reserve_for allow_unsatisfiable"
)


@dose(half(300))
@given(st.dictionaries(st.sampled_from(_FIELDS.split()), _JSON, max_size=3))
@example({"cpus": 1.7e308})
def test_whatever_a_job_says_it_is_read_or_refused(fields: dict[str, Any]) -> None:
    try:
        _read({"jobs": [{"id": 1} | fields]})
    except BadInput as error:
        assert str(error).startswith("jobs[0]")


_SITE = "epoch timezone policy order levels resources hosts queues quotas calendar usage limits fair_share jobs "
_SITE += "machines machine_groups events"


@dose(half(300))
@given(st.dictionaries(st.sampled_from(_SITE.split()), _JSON, max_size=3))
def test_whatever_a_site_says_it_is_read_or_refused(fields: dict[str, Any]) -> None:
    try:
        _read(fields)
    except BadInput as error:
        assert "\n" not in str(error)


# -- the result


def test_the_result_has_every_job_in_the_order_of_the_file_and_the_metrics() -> None:
    document = {
        "resources": P32,
        "jobs": [{"id": 7, "submit": 10, "walltime": 60}, {"id": 3, "walltime": 20, "run": 5}],
    }
    result = simulate(json.dumps(document).encode(), plan_only=False)
    done = {"resources": "1", "host": "n1", "state": "complete", "reason": None}
    done |= {"wait_s": 0, "provision_s": 0, "hold_s": 0}
    assert result == {
        "jobs": [
            {"id": 7, "submit": 10, "start": 10, "end": 70} | done,
            {"id": 3, "submit": 0, "start": 0, "end": 5} | done,
        ],
        "usage": {
            "n1": [
                ["automated", "running", 0, 5],
                ["automated", "idle", 5, 10],
                ["automated", "running", 10, 70],
            ],
            **{host: [["automated", "idle", 0, 70]] for host in ("n2", "n3", "n4")},
        },
        "metrics": {
            "avg_bounded_slowdown": 1,
            "avg_flow_s": 32.5,
            "avg_wait_s": 0,
            "makespan_s": 70,
            "utilisation": 65 / (32 * 70),
        },
    }


def test_a_plan_tells_only_of_those_who_are_there_at_time_0() -> None:
    found = plan(P32, job("nodes=1,walltime=5s", submit=-10), job("nodes=1,walltime=5s", submit=1))
    assert found.keys() == {1}


def test_a_job_that_runs_already_ends_in_its_time() -> None:
    found = run(P5, job("core=2,walltime=60s", start=-50, resources="1-2", run=55), job("core=5,walltime=9s"))
    assert (found[1]["start"], found[1]["end"], found[1]["state"]) == (-50, 5, "complete")
    assert found[2]["start"] == 5


def test_a_site_without_jobs_has_an_empty_schedule() -> None:
    assert simulate(json.dumps({"resources": [ROW]}).encode(), plan_only=False)["jobs"] == []
