"""Beside native workers of DataJoint 0.14, without a migration."""

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
    source.claim({"a": [{"recording": 1}, {"recording": 2}]}, 60)
    assert source.look(ALL).queued == 2
    lab.python_does("import lab; lab.Trace().populate(reserve_jobs=True)")
    assert lab.made == [3, 4, 5]
    assert "'done': 2" in lab.run("a", [{"recording": 1}, {"recording": 2}])
    assert lab.done == [1, 2, 3, 4, 5]


def test_a_lease_that_has_ended_no_longer_keeps_native_workers_away(make_lab: Callable[..., Lab]) -> None:
    lab = make_lab("datajoint0-mariadb")
    lab.add(1, 2)
    source = lab.source()
    source.migrate()
    source.claim({"a": [{"recording": 1}]}, 0)
    source.look(ALL)
    lab.python_does("import lab; lab.Trace().populate(reserve_jobs=True)")
    assert lab.made == [1, 2]
