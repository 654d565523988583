"""What no client of ours sends is refused before it is taken in."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from rota.client.submission import spec_of
from rota.errors import BadInput
from rota.manager.submit import intake
from rota.manager.submit.intake import Intake
from rota.wire.messages import Add, NewAfter


def test_a_chunk_with_too_many_dependencies_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "MOST_AFTER", 3)
    taking = Intake("s", "me", Mock(), Mock(), Mock())

    def chunk(parents: int) -> Add:
        after = [NewAfter(entry=0, parent=number, condition=1) for number in range(1, parents + 1)]
        return Add(n=1, submission="s", first=0, cmds=["a"], specs=[spec_of({})], envs=[b""], after=after)

    taking.check(chunk(3))
    with pytest.raises(BadInput, match="more than 3 dependencies") as refused:
        taking.check(chunk(4))
    assert "dep_groups" in refused.value.hint
