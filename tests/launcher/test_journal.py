"""The launcher's journal: what it says after a death at any moment."""

from __future__ import annotations

from pathlib import Path

from rota.launcher import journal as j

_BEGAN = j.Began("boot", 10, 20, 1)
_ONE, _TWO = (1, 1, 1), (2, 1, 2)


def _written(place: Path) -> j.Journal:
    place.mkdir(exist_ok=True)
    written = j.Journal(str(place), _BEGAN)
    written.intend(j.Intent(_ONE, "command"))
    written.add(j.Spawned(_ONE, "command", 100, 1000))
    written.intend(j.Intent(_TWO, "command"))
    written.add(j.Void(_TWO))
    written.add(j.Exited(_ONE, 100, 256))
    written.intend(j.Intent(_ONE, "behaviour"))
    return written


def test_it_tells_what_ran_what_ended_and_what_is_unknown(place: Path) -> None:
    place.mkdir()
    _written(place).close()
    story = j.read(str(place))
    assert story.began == _BEGAN
    assert story.whole
    assert list(story.tasks) == [_ONE]
    task = story.tasks[_ONE]
    assert [process.pid for process in task.processes] == [100]
    assert task.exits == {100: 256}
    assert task.intended == j.Intent(_ONE, "behaviour")


def test_cut_off_at_any_byte_it_tells_what_was_whole(place: Path) -> None:
    place.mkdir()
    _written(place).close()
    path = place / j.NAME
    data = path.read_bytes()
    seen = set()
    for end in range(len(data) + 1):
        path.write_bytes(data[:end])
        story = j.read(str(place))
        seen.add(
            (story.began is not None, _TWO in story.tasks, bool(story.tasks) and 100 in story.tasks[_ONE].exits)
        )
        assert story.whole
        assert story.began is not None or not story.tasks
    assert seen == {(False, False, False), (True, False, False), (True, True, False), (True, False, True)}


def test_damage_is_noticed_and_what_came_before_is_told(place: Path) -> None:
    place.mkdir()
    _written(place).close()
    path = place / j.NAME
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    story = j.read(str(place))
    assert not story.whole
    assert story.began == _BEGAN


def test_it_stays_small_and_keeps_what_was_not_released(place: Path) -> None:
    place.mkdir()
    written = _written(place)
    for n in range(3_000):
        key = (n, 2, n)
        written.intend(j.Intent(key, "command"))
        written.add(j.Spawned(key, "command", n + 200, 1))
        written.add(j.Exited(key, n + 200, 0))
        written.add(j.Released(key))
    assert written.size < 2 * j.COMPACT_OVER
    written.close()
    story = j.read(str(place))
    assert list(story.tasks) == [_ONE]
    assert story.tasks[_ONE].exits == {100: 256}
    assert story.tasks[_ONE].intended == j.Intent(_ONE, "behaviour")
