"""Tables that are wider than the terminal."""

from __future__ import annotations

import pytest

from rota.cli.render import fitted_table
from rota.cli.render.fitted_table import fitted, wrapped

HEAD = ["QUEUE", "PRIORITY", "SHARES"]
ROWS = [["default", "2", "alice=0.5 project:a-long-name=0.25"], ["night", "10", ""]]
NOTES = ["for all, shares alice=0.5 project:a-long-name=0.25", "for admins"]


def test_what_has_no_room_beside_its_row_is_below_it_and_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitted_table, "width", lambda _stream: 40)
    assert str(fitted(HEAD, ROWS, right="lr", kept=2, notes=NOTES)).splitlines() == [
        "QUEUE    PRIORITY",
        "default         2",
        "    for all, shares alice=0.5",
        "    project:a-long-name=0.25",
        "night          10",
        "    for admins",
    ]
    assert all(len(line) <= 40 for line in wrapped("queue default: weights project 1, used 1, asked 1; no window"))


@pytest.mark.parametrize("room", [80, None])
def test_a_table_that_fits_stays_as_it_is(room: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitted_table, "width", lambda _stream: room)
    head, *rows = str(fitted(HEAD, ROWS, right="lr", kept=2, notes=NOTES)).splitlines()
    assert (head, len(rows)) == ("QUEUE    PRIORITY  SHARES", 2)
    assert rows[0].endswith("alice=0.5 project:a-long-name=0.25")
