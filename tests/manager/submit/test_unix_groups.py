"""Unix groups of users, kept for a while."""

from __future__ import annotations

from rota.manager.submit.unix_groups import UnixGroups


def test_what_the_machine_said_is_kept_for_a_while() -> None:
    asked: list[str] = []
    now = [0.0]

    def find(user: str) -> tuple[str, ...]:
        asked.append(user)
        return ("staff",)

    groups = UnixGroups(find, lambda: now[0])
    assert not groups.is_fresh("ann")
    assert groups.of("ann") == groups.of("ann") == ("staff",)
    assert groups.is_fresh("ann")
    now[0] = 61.0
    assert not groups.is_fresh("ann")
    assert groups.of("ann") == ("staff",), "an old answer is better than a loop that waits"
    groups.look_up("ann")
    assert groups.is_fresh("ann")
    assert asked == ["ann", "ann"]
