"""What follows from bugs, by their place, number and time."""

from __future__ import annotations

from rota.core.attempts.leases import LeaseRef
from rota.core.bugs.ledger import BugRecord, Ledger, ledger_from, resumed, with_bug, with_effect_bug
from rota.core.bugs.undecided import undecided
from rota.core.events import EntrySetAside, HostHealed, TimerFired
from rota.errors import IllegalTransition


def after(*bugs: tuple[str, float, float], ledger: Ledger | None = None, version: str = "1") -> Ledger:
    """The ledger after bugs outside of any handler: (place, when, how long after being ready)."""
    ledger = ledger or Ledger(version=version)
    for place, at, ready_s in bugs:
        ledger = with_bug(ledger, undecided(place, KeyError(7)), at=at, ready_s=ready_s, version=version)
    return ledger


def test_twice_within_a_minute_of_being_ready_is_safe_mode() -> None:
    assert after(("granting", 100.0, 5.0)).safe_mode == ""
    assert after(("granting", 100.0, 5.0), ("energy", 110.0, 3.0)).safe_mode == "energy: KeyError: 7"
    assert after(("granting", 100.0, 5.0), ("granting", 400.0, 90.0)).safe_mode == ""


def test_bugs_are_counted_by_kind_and_stay_counted() -> None:
    ledger = after(("granting", 100.0, 5.0), ("commit", 110.0, 3.0))
    for event in TimerFired(), EntrySetAside("r", "ended", LeaseRef(1, 1, 1), "{}"), HostHealed(host="h", why=""):
        bug = undecided("x", KeyError(7))
        bug.event = event
        ledger = with_bug(ledger, bug, at=120.0, ready_s=1.0, version="1")
    for place in "effect SendReply", "effect SendReply", "request Act", "every second: features", "callback f":
        ledger = with_effect_bug(ledger, BugRecord(130.0, place, "E", effect=True, version="1"))
    ledger = ledger_from(resumed(ledger, version="1", at=140.0).text(), version="2")
    assert ledger.by_kind == {
        "turn": 1, "commit": 1, "timer": 2, "report": 1, "host": 1, "effect": 2, "request": 1, "callback": 1,
    }  # fmt: skip
    assert sum(ledger.by_kind.values()) == ledger.total


def test_three_times_in_ten_minutes_is_safe_mode_however_long_it_took() -> None:
    slow = [("granting", 100.0 + 200.0 * n, 190.0) for n in range(3)]
    assert after(*slow[:2]).safe_mode == ""
    assert after(*slow).safe_mode
    assert after(*(("granting", 100.0 + 400.0 * n, 390.0) for n in range(5))).safe_mode == ""


def test_what_fails_in_safe_mode_is_left_out() -> None:
    ledger = after(*[("silent runners", 100.0 + n, 1.0) for n in range(3)])
    assert ledger.safe_mode
    assert ledger.places == {"silent runners"}
    timer = undecided("host hours", KeyError(7))
    timer.event = TimerFired()
    for _ in range(3):
        ledger = with_bug(ledger, timer, at=110.0, ready_s=1.0, version="1")
    assert ledger.places == {"silent runners", "host hours"}  # not all that happens as time passes


def test_safe_mode_outlives_a_new_version_and_nothing_else_does() -> None:
    ledger = after(*[("silent runners", 100.0 + n, 1.0) for n in range(3)])
    assert ledger_from(ledger.text(), version="1") == ledger
    newer = ledger_from(ledger.text(), version="2")
    assert newer.safe_mode == ledger.safe_mode
    assert newer.places == frozenset()
    assert newer.total == 3


def test_what_was_before_a_resumption_counts_no_more() -> None:
    ledger = resumed(after(("granting", 100.0, 5.0), ("granting", 101.0, 1.0)), version="1", at=105.0)
    assert ledger.safe_mode == ""
    assert after(("granting", 110.0, 5.0), ledger=ledger).safe_mode == ""
    assert len(ledger.records) == 2


def test_bugs_in_effects_are_counted_and_nothing_follows_from_them() -> None:
    ledger = Ledger(version="1")
    for n in range(5):
        ledger = with_effect_bug(ledger, BugRecord(100.0 + n, "effect SendWork", "KeyError: 1", effect=True))
    assert [each.times for each in ledger.records] == [5]
    assert ledger.total == 5
    assert not ledger.screens
    assert after(("granting", 106.0, 5.0), ledger=ledger).safe_mode == ""


def test_the_ledger_does_not_grow_without_end() -> None:
    ledger = after(*(("granting", 1000.0 * n, 500.0) for n in range(200)))
    assert (len(ledger.records), ledger.total) == (50, 200)


def test_an_illegal_transition_names_the_job_whose_story_is_wanted() -> None:
    error = IllegalTransition("ready → running")
    error.job = 7
    bug = undecided("granting", error)
    assert bug.job == 7
    ledger = with_bug(Ledger(), bug, at=1.0, ready_s=0.0, version="", story=("added", "held"))
    assert ledger.records[-1].story == ("added", "held")
