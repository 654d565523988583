"""The line between one user and another: what may be named, and what a selection means to whom."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from rota.core.jobs.job import Spec
from rota.errors import Denied, NotFound
from rota.manager.peers.ownership import JobOwners, restricted, without_output
from rota.store.base import Clause
from rota.wire.views import BehavedView


class Disk:
    """A store that knows who owned jobs that ended; all elements of array 30 are bob's."""

    def __init__(self, owners: dict[int, str]) -> None:
        self._owners = owners

    def jobs(self, ids: list[int]) -> list[Any]:
        return [SimpleNamespace(id=id, user=self._owners[id]) for id in ids if id in self._owners]

    def find(self, clauses: list[Clause], *, above: int, limit: int) -> list[int]:
        (clause,) = clauses
        assert (above, limit) == (0, 1)
        return [30] if clause == Clause(array=30) or clause == Clause(submission="s-bob") else []


@pytest.fixture
def belongings() -> JobOwners:
    """In memory 1 is ann's and 2 bob's; ended are 11 of ann, 12 of bob, and what is of the array."""
    live = {id: SimpleNamespace(spec=Spec(user=user, cwd="/", env=1)) for id, user in ((1, "ann"), (2, "bob"))}
    disk = Disk({11: "ann", 12: "bob", 30: "bob"})
    return JobOwners(cast(Any, SimpleNamespace(jobs=live)), cast(Any, disk))


def _peer(role: str, *, trusted: bool) -> Any:
    return SimpleNamespace(role=role, trusted=trusted)


def test_only_users_that_are_not_the_owner_keep_to_their_own_jobs() -> None:
    assert restricted(_peer("user", trusted=False))
    assert not restricted(_peer("user", trusted=True))
    assert not restricted(_peer("admin", trusted=False))
    assert restricted(_peer("gateway", trusted=False))


def test_jobs_of_ones_own_pass_whether_they_live_or_have_ended(belongings: JobOwners) -> None:
    belongings.check([1, 11], "ann")
    belongings.check([], "ann")


@pytest.mark.parametrize("id", [2, 12])
def test_a_job_of_somebody_else_is_refused_by_name(belongings: JobOwners, id: int) -> None:
    with pytest.raises(Denied, match=f"job {id} belongs to bob") as refused:
        belongings.check([1, 11, id], "ann")
    assert "user=ann" in refused.value.hint


def test_a_job_that_is_only_about_to_be_there_is_not_there(belongings: JobOwners) -> None:
    with pytest.raises(NotFound, match="no job 99"):
        belongings.check([1, 99], "ann")


def test_a_selection_means_the_users_own(belongings: JobOwners) -> None:
    wide = [Clause(), Clause(group="g"), Clause(state=3), Clause(low=1, high=20), Clause(user="ann")]
    mine = [Clause(user="ann"), Clause(group="g", user="ann"), Clause(state=3, user="ann")]
    mine += [Clause(low=1, high=20, user="ann"), Clause(user="ann")]
    assert belongings.narrowed(wide, "ann") == mine


def test_a_job_that_is_named_alone_stays_so(belongings: JobOwners) -> None:
    assert belongings.narrowed([Clause(low=1, high=1)], "ann") == [Clause(low=1, high=1)]
    some = Clause(low=11, high=11, state=14)
    assert belongings.narrowed([some], "ann") == [Clause(low=11, high=11, state=14, user="ann")]


@pytest.mark.parametrize(
    ("clause", "what"),
    [
        (Clause(low=2, high=2), "job 2"),
        (Clause(low=12, high=12, group="g"), "job 12"),
        (Clause(array=30, indexes=((1, 1),), state=3), "array 30"),
        (Clause(submission="s-bob"), "this submission"),
        (Clause(user="bob", group="g"), "what you name"),
    ],
)
def test_what_is_named_and_belongs_to_somebody_else_is_refused(
    belongings: JobOwners, clause: Clause, what: str
) -> None:
    with pytest.raises(Denied, match=f"{what} belongs to bob"):
        belongings.narrowed([Clause(low=1, high=1), clause], "ann")


def test_an_array_of_which_nothing_is_stored_yet_is_narrowed(belongings: JobOwners) -> None:
    assert belongings.narrowed([Clause(array=40)], "ann") == [Clause(array=40, user="ann")]


def test_what_behaviours_printed_is_not_shown_to_others() -> None:
    behaved = BehavedView("run: tidy", False, "exit 1: the password is swordfish")
    view: Any = SimpleNamespace(attempts=[SimpleNamespace(behaviours=[behaved])])
    without_output(view)
    assert (behaved.behaviour, behaved.ok, behaved.message) == ("run: tidy", False, "")
    without_output(cast(Any, SimpleNamespace(attempts=3)))
