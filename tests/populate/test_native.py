"""What is special to DataJoint: native workers beside ours, keys of all types, renamed attributes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rota.populate.source.base import TableFailed, Wanted
from tests.populate.laboratory import Lab

ALL = [Wanted(None, 100)]


def test_without_a_migration_the_mark_queued_is_refused_with_what_to_do(make_lab: Callable[..., Lab]) -> None:
    lab = make_lab("datajoint0-mariadb")
    lab.add(1)
    with pytest.raises(TableFailed, match="run rota populate migrate, or set mark: reserved"):
        lab.source().look(ALL)


def test_with_the_mark_reserved_native_workers_leave_queued_keys_alone(make_lab: Callable[..., Lab]) -> None:
    lab = make_lab("datajoint0-mariadb", mark="reserved")
    lab.add(*range(1, 6))
    source = lab.source()
    assert source.migrate() == []
    assert source.look(ALL).todo == 5
    source.claim({"a": [{"recording": 1}, {"recording": 2}]}, 3600)
    assert source.look(ALL).queued == 2
    lab.python_does("import lab; lab.Trace().populate(reserve_jobs=True)")
    assert lab.made == [3, 4, 5]
    assert "'done': 2" in lab.run("a", [{"recording": 1}, {"recording": 2}])
    assert lab.done == [1, 2, 3, 4, 5]


def test_rows_of_keys_that_were_made_later_count_as_nothing(make_lab: Callable[..., Lab]) -> None:
    lab = make_lab("datajoint0-mariadb")
    lab.add(1, 2, 3)
    source = lab.source()
    source.migrate()
    lab.behave(1, "raise")
    lab.python_does("import lab; lab.Trace().populate('recording = 1', reserve_jobs=True, suppress_errors=True)")
    assert source.look(ALL).errors == 1
    lab.python_does("import lab; lab.Trace().insert1((1, 2.0), allow_direct_insert=True)")
    look = source.look(ALL)
    assert (look.done, look.todo, look.errors) == (1, 2, 0)


def test_a_lease_that_has_ended_no_longer_keeps_native_workers_away(make_lab: Callable[..., Lab]) -> None:
    lab = make_lab("datajoint0-mariadb")
    lab.add(1, 2)
    source = lab.source()
    source.migrate()
    source.claim({"a": [{"recording": 1}]}, 0)
    source.look(ALL)
    lab.python_does("import lab; lab.Trace().populate(reserve_jobs=True)")
    assert lab.made == [1, 2]


@pytest.mark.parametrize("kind", ["datajoint2-mariadb", "datajoint2-postgresql", "datajoint0-mariadb"])
def test_keys_of_texts_dates_uuids_and_decimals_are_made_and_their_errors_are_known(
    make_lab: Callable[..., Lab], kind: str
) -> None:
    lab = make_lab(kind)
    lab.python_does(
        "import odd, datetime; odd.Odd.insert("
        "[('a%', datetime.date(2026, 1, n), odd.uuid_of(n), '1.50') for n in (1, 2, 3)])"
    )
    lab.spec["name"] = "odd.OddSum"
    source = lab.source()
    source.migrate()
    (found,) = source.look([Wanted("day < '2026-01-03' AND animal LIKE 'a%'", 10)]).free
    assert len(found) == 2
    assert source.claim({"a": found}, 3600) == {"a": found}
    assert source.look(ALL).queued == 2
    said = lab.run("a", found)
    assert "'done': 2" in said, said
    (left,) = source.look(ALL).free
    source.claim({"b": left}, 3600)
    lab.behave(0, "kill")
    lab.run("b", left)
    assert source.release("b", on_lost="error", why="killed") == (0, 1)
    look = source.look(ALL)
    assert (look.done, look.errors, look.free) == (2, 1, [[]])
    lab.python_does("import odd; odd.OddSum().populate(reserve_jobs=True)")
    assert len(lab.made) == 3
