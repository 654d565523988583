"""Fields of jobs are declared once: what is made from the declarations is current and whole, and both sides of a
connection draw the same bounds."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota.client.fields.fields import Wanted
from rota.client.fields.new_spec import new_spec
from rota.core.admission.spec_checks import check_spec
from rota.core.fields import kinds
from rota.core.fields.array import MAX_ELEMENTS
from rota.core.fields.field import JobField
from rota.core.fields.kind_builders import optional
from rota.core.fields.table import CHANGEABLE, FIELDS, IN_SPEC
from rota.core.jobs.job import Spec
from rota.errors import BadInput
from rota.units import MAX_BYTES, MAX_SECONDS
from rota.wire.job_structs import NewSpec, RunSpec, SpecChange
from rota.wire.job_view import JobView
from rota.wire.specs import spec_from

_TOP = Path(__file__).parents[3]


def _generator() -> Any:
    found = importlib.util.spec_from_file_location("job_structs", _TOP / "tools" / "job_structs.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


_MADE = _generator()


@pytest.mark.parametrize("module", _MADE.MODULES)
def test_the_structs_are_those_of_the_declarations(module: str) -> None:
    written = (_TOP / "src" / "rota" / module).read_text("utf-8")
    assert written == _MADE.text_of(module), "write it with: make generated"


def test_a_field_that_comes_later_is_last_in_every_struct_where_it_travels() -> None:
    later = JobField(
        name="patience", kind=optional(kinds.DURATION), default=None, attribute="patience_s", run=True,
        number=99, help="How long.",
    )  # fmt: skip
    for module, (_head, shapes) in _MADE.MODULES.items():
        old, new = (_MADE.text_of(module, fields) for fields in (FIELDS.values(), (*FIELDS.values(), later)))
        added = [line for line in new.splitlines() if "patience" in line]
        assert len(added) == len(shapes), module
        assert new.splitlines()[-1] in added, module
        assert [line for line in new.splitlines() if line not in added] == old.splitlines()


def test_two_fields_cannot_have_the_same_number() -> None:
    one, other = (msgspec.structs.replace(FIELDS["name"], name=name, number=99) for name in ("one", "other"))
    with pytest.raises(SystemExit, match="same number"):
        _MADE.text_of("wire/job_structs.py", (*FIELDS.values(), one, other))


def test_every_field_travels_where_its_declaration_says() -> None:
    for field in FIELDS.values():
        assert (field.spec_name in NewSpec.__struct_fields__) >= field.in_spec
        assert (field.spec_name in Spec.__struct_fields__) >= field.in_spec
        assert (field.spec_name in RunSpec.__struct_fields__) >= field.run
        assert (field.spec_name in SpecChange.__struct_fields__) == (field.name in CHANGEABLE)
        assert not field.in_spec or not field.view_name or field.view_name in JobView.__struct_fields__


def test_every_default_may_be_sent() -> None:
    base = Wanted(cwd="/", mem=1 << 30)
    check_spec(spec_from(new_spec(base, 0), (), user="ann", env=1))


#: Field → values at its bounds, as users write them: the last that is allowed, and the first that is not.
_EDGES: dict[str, list[tuple[Any, Any]]] = {
    "name": [("x" * 255, "x" * 256)],
    "group": [("x" * 255, "x" * 256), ("a", "@a")],
    "project": [("x" * 255, "x" * 256), ("a", "a\tb")],
    "learn": [("x" * 255, "x" * 256), ("...", "..")],
    "queue": [("x" * 64, "x" * 65)],
    "priority": [(255, 256), (0, -1)],
    "gpus": [(1024, 1025), (0, -1)],
    "retries": [(10_000, 10_001), (0, -1)],
    "stdout": [("%j", "%q"), ("x" * 4095, "x" * 4096)],
    "stderr": [("x", "x/")],
    "dep_groups": [
        (["x" * 255], ["x" * 256]), (["a"], ["a:b"]), ([*map(str, range(1000))], [*map(str, range(1001))]),
    ],
    "on_exit": [(["run: x"] * 100, ["run: x"] * 101), (["remove"], ["walk"])],
    "override": [("always", "sometimes")],
    "signal": [("USR1", "NOPE")],
    "retry_on": [(["exit"], ["rain"])],
}  # fmt: skip
#: The same of numbers with units, as they are sent.
_SENT_EDGES = {
    "walltime_s": ([1e-6, MAX_SECONDS], [0.0, -1.0, MAX_SECONDS + 1, math.inf, math.nan]),
    "checkpoint_s": ([1e-6, MAX_SECONDS], [0.0, -1.0, MAX_SECONDS + 1, math.nan]),
    "backoff_s": ([0.0, MAX_SECONDS], [-1.0, MAX_SECONDS + 1, math.nan]),
    "no_retry_over_s": ([0.0, MAX_SECONDS], [-1.0, MAX_SECONDS + 1, math.nan]),
    "size.mem": ([0, MAX_BYTES - 1], [-1, MAX_BYTES]),
    "size.disk": ([0, MAX_BYTES - 1], [-1, MAX_BYTES]),
    "size.time_s": ([1e-6, MAX_SECONDS], [0.0, MAX_SECONDS + 1, math.nan]),
    "size.cpus": ([0, 100_000_000], [-1, 100_000_001]),
}


def _refused(spec: Spec) -> bool:
    try:
        check_spec(spec)
    except BadInput:
        return True
    return False


@pytest.mark.parametrize("name", _EDGES)
def test_both_sides_draw_the_same_bounds(name: str) -> None:
    base = Wanted(cwd="/", mem=1 << 30)
    field = FIELDS[name]
    for allowed, refused in _EDGES[name]:
        wanted = base.changed({name: allowed})
        check_spec(spec_from(new_spec(wanted, 0), (), user="ann", env=1))
        with pytest.raises(BadInput, match=f"field '{name}'"):
            base.changed({name: refused})
        sent = tuple(refused) if isinstance(refused, list) else refused
        if field.in_spec:
            spec = msgspec.structs.replace(Spec(user="ann", cwd="/", env=1), **{field.spec_name: sent})
        else:
            size = msgspec.structs.replace(Spec(user="ann", cwd="/", env=1).size, **{field.spec_name: sent})
            spec = Spec(user="ann", cwd="/", env=1, size=size)
        assert _refused(spec), refused


@pytest.mark.parametrize("name", _SENT_EDGES)
def test_numbers_that_no_client_of_ours_makes_are_refused(name: str) -> None:
    allowed, refused = _SENT_EDGES[name]
    for value, expected in [*((each, False) for each in allowed), *((each, True) for each in refused)]:
        spec = Spec(user="ann", cwd="/", env=1)
        whole, _, part = name.rpartition(".")
        if whole:
            spec = msgspec.structs.replace(spec, size=msgspec.structs.replace(spec.size, **{part: value}))
        else:
            spec = msgspec.structs.replace(spec, **{part: value})
        assert _refused(spec) is expected, value


def test_the_page_says_how_many_elements_an_array_has_at_most() -> None:
    assert f"{MAX_ELEMENTS:,} elements" in FIELDS["array"].kind.doc


def test_every_field_of_a_specification_has_a_check_that_takes_its_default() -> None:
    spec = Spec(user="ann", cwd="/", env=1)
    for field in IN_SPEC:
        field.kind.check(getattr(spec, field.spec_name))
