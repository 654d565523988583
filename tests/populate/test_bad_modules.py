"""Modules of tables that do what none should: the manager says which, and others go on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rota.populate.source import desk
from rota.populate.source.base import TableFailed, Wanted
from tests.populate.laboratory import Lab

ALL = [Wanted(None, 100)]


@pytest.fixture
def lab(make_lab: Callable[..., Lab]) -> Lab:
    found = make_lab("datajoint2-mariadb")
    found.add(1, 2, 3)
    return found


def test_what_a_module_prints_and_reads_on_import_is_not_for_the_manager(lab: Lab) -> None:
    lab.spec["name"] = "noisy.Trace"
    source = lab.source()
    assert source.look(ALL).todo == 3
    assert source.claim({"a": [{"recording": 1}]}, 3600) == {"a": [{"recording": 1}]}


def test_an_import_that_never_ends_is_given_up_and_the_next_table_is_served(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "_IMPORT_S", 1.0)
    source = lab.source()
    source.spec["name"] = "endless.Table"
    with pytest.raises(TableFailed, match=r"did not answer 'open' within 1 s: endless.Table"):
        source.look(ALL)
    monkeypatch.undo()
    source.spec["name"] = "lab.Trace"
    assert source.look(ALL).todo == 3


def test_an_import_that_ends_the_process_is_told_with_its_status(lab: Lab) -> None:
    source = lab.source()
    source.spec["name"] = "deadly.Table"
    with pytest.raises(TableFailed, match=r"ended while it was asked 'open' \(exit status 7\): deadly.Table"):
        source.look(ALL)
    source.spec["name"] = "lab.Trace"
    assert source.look(ALL).todo == 3


def test_an_interpreter_that_is_not_there_is_named(lab: Lab) -> None:
    source = lab.source()
    source.desk.close()
    source.desk.python = "/nowhere/python"
    with pytest.raises(TableFailed, match="/nowhere/python cannot be started: No such file"):
        source.look(ALL)


def test_something_that_is_no_table_is_refused(lab: Lab) -> None:
    source = lab.source()
    source.spec["name"] = "lab.Recording"
    with pytest.raises(TableFailed, match="is not a table that DataJoint populates") as error:
        source.open()
    assert error.value.kind == "table"


@pytest.mark.parametrize("kind", ["datajoint2-mariadb", "datajoint0-mariadb"])
def test_a_jobs_table_with_a_coarser_key_is_warned_of_and_works(make_lab: Callable[..., Lab], kind: str) -> None:
    lab = make_lab(kind)
    lab.add(1, 2)
    lab.spec["name"] = "odd.Pieces"
    source = lab.source()
    source.migrate()
    (warning,) = source.open()
    assert "piece" in warning
    (found,) = source.look(ALL).free
    source.claim({"a": found}, 3600)
    said = lab.run("a", found)
    assert "'done': 2" in said, said
    assert source.look(ALL).done == 2
