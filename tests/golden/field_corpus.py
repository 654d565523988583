"""A corpus of jobs as users write them, and everything that becomes of each: what is sent, stored, run and shown,
its identity key, what `modify` makes of the same fields, and the words of every refusal.

`python -m tests.golden.field_corpus` writes it. Fields that came later are in none of its cases, and stay out.
"""

from __future__ import annotations

import base64
import json
import lzma
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from rota.client.batches import UploadBatch
from rota.client.fields.fields import Wanted
from rota.client.fields.modification import spec_change
from rota.client.fields.new_spec import new_spec
from rota.client.intake import from_objects
from rota.client.wr.fields import WrPlace
from rota.client.wr.reader import convert
from rota.core.admission.limit_uses import resolve
from rota.core.admission.spec_checks import check_spec
from rota.core.jobs.command import Command
from rota.core.jobs.job import Spec
from rota.core.states import State
from rota.core.stored import StoredJob
from rota.core.submit.identity import key_maker
from rota.errors import BadInput
from rota.manager.views.rows import view
from rota.plan.policy.limits import Limit, Limits
from rota.wire.specs import spec_from, wanted_limits

FILE = Path(__file__).with_name("fields.json.xz")

# ruff: noqa: E501
# fmt: off
_DURATIONS: list[Any] = [
    "90s", "2m", "1h30m", "2d", "12:00:00", "1-12:00:00", "0s", "1.5h", "0.000001s", "36500d", "36501d", " 5m ",
    "5", 5, 1.5, "-5m", "1:30", "x", "", None, True, [], {}, "none",
]
_SIZES: list[Any] = [
    "500M",
    "4G",
    "1.5T",
    "0B",
    "1023P",
    "1024P",
    "2000P",
    "4g",
    "4GiB",
    "7",
    7,
    "-1G",
    "x",
    None,
    [],
]
_FLAGS: list[Any] = [True, False, None, 1, "yes", "true"]
_TEXTS: list[Any] = [
    "a",
    "größe x",
    "",
    " a ",
    "a\tb",
    "a\nb",
    "x" * 255,
    "x" * 256,
    "ü" * 128,
    "a\0b",
    5,
    None,
    ["a"],
]
_COUNTS: list[Any] = [0, 1, 7, 255, 256, 1024, 1025, 10_000, 10_001, -1, 1.0, 1.5, "3", "x", True, None, 1 << 70]
_BEHAVIOURS: list[Any] = [
    ["run: make"], "run: make", [{"run": "make x"}], ["remove"], ["cleanup"], [{"remove": True}], [], "none",
    ["none"], ["run:"], ["walk"], [{"run": 1}], [{"remove": False}], [{}], [1], 5, None, ["run: x"] * 101,
]
_PATTERNS: list[Any] = ["out.txt", "o/%j_%A_%a_%x_%u_%N%%", "%q", "x%", "dir/", "", "x" * 4096, 5, None]

#: Field → values of it in JSON, right and wrong. Nothing depends on the machine or on the time.
VALUES: dict[str, list[Any]] = {
    "cwd": ["/data", "sub/x", "../y", "/a/./b//c", "/a/../b", "", "x" * 4096, 5, None, "a\0b"],
    "scratch": _FLAGS,
    "env": [{}, {"A": "1"}, {"B": "x y", "A": ""}, {"A": 1}, {"": "x"}, {"A=": "x"}, {"A": "\0"}, ["A=1"], "A=1", None],
    "name": _TEXTS,
    "group": [*_TEXTS, "@x", "a\\b", "a,b", ["a", "b"], ["a", "b", "a"], [], ["a", 1], ["x"] * 200],
    "project": _TEXTS,
    "queue": ["default", "admin", "besteffort", "x" * 64, "x" * 65, "a b", "", 5, None],
    "priority": _COUNTS,
    "cpus": [0, 1, 2.5, 0.25, 0.333, 1_000_000, 1_000_001, -1, "2", "x", True, None],
    "mem": _SIZES,
    "disk": _SIZES,
    "time": _DURATIONS,
    "gpus": _COUNTS,
    "request": [
        "nodes=2/core=4,walltime=1h", ["core=1", "core=2,walltime=30m"], "none", ["none"], None, [], "", "core=",
        "nodes=0", ["core=1", "x="], "core=1,walltime=0s", ["core=1"] * 33, 5, [5],
    ],
    "where": ["gpu = 'YES' and mem_gb >= 64", "none", "", None, "gpu =", "x" * 4097, 5],
    "walltime": _DURATIONS,
    "type": [
        "besteffort", ["besteffort", "idempotent"], "container", "inner=12", "timesharing=user,*", "deploy,noop",
        "deadline=@4000000000", "postpone=2090-01-01T00:00Z", "none", None, [], "nonsense", "deadline=@1", "type:big",
        ["besteffort"] * 33, 5, "inner=",
    ],
    "at": ["2090-01-01T00:00Z", "@4000000000", "@1", "@4000000000.5", "none", None, "nonsense", "5", 5, "@99999999999"],
    "array": ["1-3", "0-9:2", "1,3,7-9", "5", None, "", "3-1", "1-2:0", "1,1", "x", "1-1000001", "1-3%0", 5, "1000000000"],
    "after": [
        "12", 12, [12, "afterany:13"], "12-15", "12_3", "12_*", "12_3-7", "@g", "afternotok:@g:12", "@a\\,b",
        {"cmd": "make", "cwd": "/d"}, [{"cmd": "make"}], {"cmd": "make", "cwd": "d"}, {"cmd": 1}, "line:1", "line:5",
        "0", "15-12", "12_7-3", "x", "", None, True, "@", "1-20000",
    ],
    "dep_groups": ["g", ["g", "h", "g"], "a,b", "a\\,b", [], "", ["@x"], ["a:b"], [" a"], [5], 5, None],
    "live": _FLAGS,
    "allow_empty_group": _FLAGS,
    "limits": [
        "blast:2", ["licence:3", "blast:2"], "big:any", "known", "known!", "blast:2!", [], "none", ["none"], "a:0",
        "a:1000001", "a:x", "a b:1", ["a:1", "a:2"], "x" * 65, 5, [5], None,
    ],
    "learn": [*_TEXTS, ".", ".."],
    "override": ["no", "higher", "always", "", "x", None, 5],
    "input_bytes": [0, 5, "5", "4G", 1 << 60, (1 << 60) - 1, -1, 1.5, True, None, "x"],
    "input_file": [None, "", 5, "/nowhere/at/all", "/"],
    "retries": _COUNTS,
    "backoff": _DURATIONS,
    "no_retry_over": _DURATIONS,
    "retry_on": ["exit", "exit,lost", ["lost", "exit"], ["lost", " exit "], [], None, "default", "x", [5], 5, "walltime"],
    "pipefail": _FLAGS,
    "on_success": _BEHAVIOURS,
    "on_failure": _BEHAVIOURS,
    "on_exit": _BEHAVIOURS,
    "stdout": _PATTERNS,
    "stderr": _PATTERNS,
    "checkpoint": _DURATIONS,
    "signal": ["USR1", "SIGUSR1", "usr1", 10, "10", "", None, "NOPE", 999, True, []],
    "rerun": _FLAGS,
    "once": _FLAGS,
    "allow_unsatisfiable": _FLAGS,
    # Names that are no fields, or none yet.
    "job_keys": ["x"], "walltme": ["1h"], "call": ["m:f"], "pool": ["x"], "dry_run": [True], "zzz": [1],
}
#: Together they contradict each other, or do not.
TOGETHER: list[dict[str, Any]] = [
    {"rerun": True, "once": True},
    {"input_bytes": 5, "input_file": "x"},
    {"request": "core=2", "cpus": 2},
    {"request": "core=2", "gpus": 1},
    {"request": "core=2", "mem": "2G", "walltime": "1h"},
    {"scratch": True, "on_exit": ["cleanup"]},
    {"on_exit": ["cleanup"]},
    {"checkpoint": "1h", "walltime": "1h"},
    {"checkpoint": "1m", "walltime": "1h", "signal": "USR1"},
    {"at": "@4000000000", "type": "besteffort"},
    {"at": "@4000000000", "type": "container"},
    {"after": "@g", "dep_groups": ["g"]},
    {"array": "1-3", "after": "12", "input_bytes": "1M"},
    {"mem": "2G", "time": "2h", "disk": "1G", "cpus": 0.5, "gpus": 2},
    {"mem": "2G", "override": "always", "learn": "x"},
]
#: Lines of wr.
WR: list[str] = [
    "echo a",
    "echo a\t" + json.dumps({"rep_grp": "g", "req_grp": "r", "memory": "1G", "time": "1h", "cpus": 2, "disk": 3}),
    *(
        json.dumps({"cmd": "echo b", name: value})
        for name, values in {
            "cwd": ["/d", 5], "cwd_matters": [True, 5], "change_home": [True, 5], "memory": ["1G", "x", 5],
            "time": ["1h", "1h30m", "90ms", "0", "2d", "x", 5], "cpus": [2, 0.5, "x"], "disk": [5, -1, "x", True],
            "override": [0, 1, 2, 3, "x"], "priority": [7, 300, "x"], "retries": [2, -1], "rep_grp": ["a", "@a", 5],
            "req_grp": ["a", ".", 5], "no_retry_over_walltime": ["1h", "0", "x", 5], "env": [["A=1"], ["A"], "A=1"],
            "dep_grps": [["a", "b"], ["a:b"], "a"], "deps": [["a"], ["a:b"], "a"],
            "cmd_deps": [[{"cmd": "echo a", "cwd": ""}], ["x"], "x", [{"essence": {"Cmd": "x"}}]],
            "limit_grps": [["a"], ["a:3"], ["a:-1"], ["a b"], ["17:00:00 < time < 20:00:00"], ["x < time"],
                           ["2090-07-01 12:00:00 < datetime"], ["datetime < x"], "a"],
            "on_failure": [[{"run": "x"}], [{"cleanup": True}], [{"copy_to_manager": ["x"]}], [{"x": 1}], "x"],
            "on_exit": [[{"run": "x"}], [{"remove": True}]], "on_success": [[{"nothing": True}]],
            "with_docker": ["img", 5], "with_singularity": ["img"], "container_mounts": ["/a,/b:/c"],
            "cloud_os": ["x"], "mounts": [[{"a": 1}]], "nonsense": [1], "queue": ["x"],
        }.items()
        for value in values
    ),
    "a\tb\tc", "\tx", "{", '{"cmd": 5}', "{}", 'a\t{"cmd": "b"}', "# comment", "",
]
# fmt: on

_USER = "ann"
_LIMITS = Limits()
_LIMITS.declare(Limit("known", 5))


def cases() -> list[dict[str, Any]]:
    """Every value alone, as JSON and as a word of the command line, and right ones together."""
    found: list[dict[str, Any]] = []
    right: dict[str, list[Any]] = {}
    for name, values in VALUES.items():
        for value in values:
            found.append({"fields": {name: value}})
            found.append({"fields": {name: _as_words(value)}, "text": True})
            if "error" not in outcome(found[-2]):
                right.setdefault(name, []).append(value)
    found += [{"fields": fields} for fields in TOGETHER]
    found += [{"fields": {name: _as_words(one) for name, one in each.items()}, "text": True} for each in TOGETHER]
    chance = random.Random(16)
    for _ in range(250):
        names = chance.sample(sorted(right), chance.randint(2, 14))
        found.append({"fields": {name: chance.choice(right[name]) for name in names}})
    return found


def _as_words(value: Any) -> Any:
    """As the command line gives it: texts, lists of texts, and flags."""
    if isinstance(value, list):
        return tuple(_as_words(one) for one in value if isinstance(one, str | int))
    if isinstance(value, dict):
        return tuple(f"{name}={one}" for name, one in value.items())
    return value if isinstance(value, bool) or value is None else str(value)


def outcome(case: dict[str, Any]) -> dict[str, Any]:
    """What becomes of one case today."""
    fields = {
        name: tuple(v) if isinstance(v, list) and case.get("text") else v for name, v in case["fields"].items()
    }
    text = bool(case.get("text"))
    found = {"modify": _told(lambda: json.loads(msgspec.json.encode(spec_change(fields, text=text))))}
    base = Wanted(cwd="/work", mem=1 << 30)
    if text:
        spec = _told(lambda: new_spec(base.changed(fields, text=True), 0))
        if isinstance(spec, dict):
            return found | spec
        return found | {"new": _packed(spec)}
    batches = _told(lambda: list(from_objects([{"cmd": "echo a"}, {"cmd": ["echo", "b"], **fields}], base)))
    if isinstance(batches, dict):
        return found | batches
    return found | _of_batch(batches)


def _of_batch(batches: list[UploadBatch]) -> dict[str, Any]:
    (batch,) = batches
    new = batch.specs[(batch.spec_of or [0, 0])[-1]]
    found = {
        "new": _packed(new),
        "rest": _packed([batch.cmds, batch.spec_of, batch.lines, batch.after, batch.rerun, batch.allowed,
                         batch.elements, batch.inputs]),
    }  # fmt: skip

    def stored() -> Spec:
        spec = spec_from(new, resolve(wanted_limits(new.limits), _LIMITS, {}, user=_USER), user=_USER, env=3)
        check_spec(spec)
        return spec

    spec = _told(stored)
    if isinstance(spec, dict):
        return found | {"manager": spec}
    key = key_maker(user=_USER, cwd=None if spec.scratch else spec.cwd)
    found["stored"] = msgspec.json.encode(spec).decode()
    found["keys"] = [key(cmd, 0) for cmd in batch.cmds[:2]]
    found["run"] = _packed(_run(spec))
    found["view"] = msgspec.json.encode(view(_row(batch.cmds[-1]), spec, None, host=None)).decode()
    return found


def _run(spec: Spec) -> Any:
    from rota.core.jobs.job import Job
    from rota.manager.loop.perform import _run_spec

    job = Job(1, "k", spec, 7, "true", State.READY, "s", 0.0)
    return _run_spec(job)


def _row(cmd: Command) -> StoredJob:
    return StoredJob(
        id=5, key="ab", submission="s", spec_id=7, group="g", user=_USER, cmd=cmd, state=State.READY, attempt=0, tries=0,
        submitted_at=1.7e9, ready_at=1.7e9, due_at=None, ended_at=None, reason_code=None, reason_message=None, after=(),
        input_bytes=17,
    )  # fmt: skip


def _told(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except BadInput as error:
        return {"error": [error.code, error.message, error.hint]}


def _packed(value: Any) -> str:
    return base64.b64encode(msgspec.msgpack.encode(value)).decode()


def wr() -> list[Any]:
    """What each line of wr becomes, in the words of the fields of Rota."""
    place = WrPlace(cwd="/work")
    found = []
    for line in WR:
        said = _told(lambda line=line: convert([line.encode()], source="f", place=place))
        found.append(said if isinstance(said, dict) else json.loads(msgspec.json.encode(said)))
    return found


def corpus() -> dict[str, Any]:
    known = cases()
    return {
        "cases": [{**case, "is": outcome(case)} for case in json.loads(json.dumps(known))],
        "wr": [{"line": line, "is": one} for line, one in zip(WR, wr(), strict=True)],
    }


if __name__ == "__main__":
    FILE.write_bytes(lzma.compress(json.dumps(corpus(), indent=0).encode(), preset=9))
    sys.exit(0)
