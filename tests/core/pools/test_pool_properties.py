"""Whatever an engine does and whenever the manager dies: never too many runners, and at the end those wanted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.core.pools.pool_machine import LARGE, SMALL, PoolMachine
from tests.dose import dose

LIES = ("refuse", "fail", "lose", "late", "claim", "twice")
EVENTS = ("survey", "start", "crash", "appear", "leave", "die", "deaf")
MOST = 4

steps = st.one_of(
    st.tuples(st.just("want"), st.integers(0, 6), st.integers(0, 3)),
    st.tuples(st.just("perform"), st.integers(1, 4), st.just(0)),
    st.tuples(st.just("lie"), st.integers(0, len(LIES) - 1), st.just(0)),
    st.tuples(
        st.sampled_from(("survey", "start", "crash", "appear", "leave", "die", "deaf")), st.just(0), st.just(0)
    ),
    st.tuples(st.just("forget"), st.integers(0, 5), st.just(0)),
    st.tuples(st.just("advance"), st.integers(1, 700), st.just(0)),
)


def take(m: PoolMachine, step: tuple[str, int, int]) -> None:
    what, first, second = step
    engine = m.engine
    things = list(engine.things.values())
    match what:
        case "want":
            m.want({SMALL: first, LARGE: second})
        case "perform":
            m.perform(most=first)
        case "lie":
            engine.lie = LIES[first]
        case "survey":
            m.survey()
        case "start":
            m.start_things()
        case "crash":
            m.crash()
        case "appear":
            while engine.late:
                engine.make(engine.late.pop())
        case "leave" if m.runners:
            m.end(next(iter(m.runners.values())), goodbye=True)
        case "die" if things:
            m.end(things[0].id)
        case "deaf":
            engine.deaf = not engine.deaf
        case "forget" if first < len(things):
            engine.forgotten ^= {things[first].id}
        case "advance":
            m.advance(float(first))
    assert len(m.runners) <= MOST, "more runners have joined than may exist"


@dose(25)
@given(st.lists(steps, max_size=40), st.integers(0, 3), st.integers(0, 3))
def test_bounded_at_all_times_and_right_once_the_engine_is_honest(
    taken: list[tuple[str, int, int]], small: int, large: int
) -> None:
    m = PoolMachine(max_runners=MOST)
    for step in taken:
        take(m, step)
    m.engine.lie, m.engine.deaf, m.engine.forgotten = "", False, set()
    m.engine.late.clear()
    m.want({SMALL: small, LARGE: large})
    for _ in range(4):
        m.settle()
        m.start_things()
        m.advance(301.0)  # waits after errors are over
    m.settle()
    by_need = dict.fromkeys((SMALL, LARGE), 0)
    for intent in m.pool.intents.values():
        assert intent.key, "its runner has joined"
        by_need[intent.need] += 1
    total = sum(by_need.values())
    assert total <= MOST
    assert total >= min(MOST, small + large)
    assert len(m.engine.things) == total == len(m.runners)
    m.want({})
    for id in list(m.engine.things):
        m.end(id, goodbye=True)
    m.settle()
    assert not m.engine.things
    assert m.store.load().intents == []
