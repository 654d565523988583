"""What the headers of an error say."""

from __future__ import annotations

import pytest

from rota.api.answers import problem
from rota.api.problems import ManagerAway
from rota.client.endpoint import slow_manager
from rota.client.session import Disconnected
from rota.errors import NotDone, RotaError


@pytest.mark.parametrize(
    ("error", "safe"),
    [(NotDone(), True), (ManagerAway("there is none"), True), (Disconnected(), False), (slow_manager(30), False)],
)
def test_a_client_is_told_to_try_again_if_nothing_was_done(error: RotaError, safe: bool) -> None:
    answer = problem(error)
    assert answer.status_code == 503  # type: ignore[attr-defined]
    assert ("retry-after" in answer.headers) == safe  # type: ignore[attr-defined]
