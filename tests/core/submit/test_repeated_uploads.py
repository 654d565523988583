"""A submission that was accepted stays accepted, whatever becomes of a second upload with its id."""

from __future__ import annotations

import pytest

from rota.core.jobs.job import Condition
from rota.core.states import State
from rota.errors import NotFound
from tests.core.machine import Entry, Machine, spec


@pytest.mark.parametrize("refused", [True, False], ids=["refused", "dropped"])
def test_a_second_upload_that_is_undone_in_the_same_batch_leaves_the_first(refused: bool) -> None:
    m = Machine()
    m.with_runner()
    m.add_quietly("before")  # its commit is in flight, so what follows gathers in one batch
    first = m.send_chunk([Entry("a", spec())], submission="u")
    m.send_chunk([Entry("b", spec())], submission="u", last=False)
    if refused:
        second = m.send_chunk([Entry("c", spec(), ((99, Condition.OK, False),))], submission="u")
    else:
        m.drop("u")
    (job,) = m.answer(first).added
    if refused:
        with pytest.raises(NotFound):
            m.answer(second)
    stored = m.store.submission("u")
    assert stored is not None
    assert stored.answer is not None
    assert stored.count == 1
    m.crash()
    m.heal()
    assert m.state(job) is State.RUNNING
    assert {each.cmd for each in m.world.jobs.values()} == {"before", "a"}
