"""Whatever happens to nodes that sleep: nothing begins there, and nothing is forgotten."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rota.core import events
from rota.core.machines.node_energy import NodeEnergy
from rota.core.states import State
from tests.core.sleepers import RULES, Cluster
from tests.dose import dose

STEPS = ("job", "wide", "plain", "tick", "long", "slept", "woke", "failed", "unslept", "end", "crash", "lone")


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3)), max_size=40))
@dose(40)
def test_nothing_is_ever_sent_to_a_node_that_sleeps_and_every_job_runs_in_the_end(
    steps: list[tuple[str, int]],
) -> None:
    c = Cluster(3)
    jobs: list[int] = []
    for what, number in steps:
        host = f"h{number % 3 + 1}"
        state = c.energy()[host]
        match what:
            case "job":
                jobs.append(c.job())
            case "wide":
                jobs.append(c.job(f"nodes={number % 3 + 1}"))
            case "plain":
                jobs += c.add("true", fresh=True).added
            case "tick":
                c.tick(1 + 20 * number)
            case "long":
                c.tick(650)
            case "slept" if state == "falling asleep":
                c.part(host)
            case "woke" if state in ("asleep", "waking", "suspected"):
                c.wake(host)
            case "failed" if state == "waking":
                c.happened(events.PowerCommandEnded(host=host, wake=True, error="no"))
            case "unslept" if state == "falling asleep":
                c.happened(events.PowerCommandEnded(host=host, wake=False, error="no"))
            case "end" if c.running():
                c.end(min(c.running()))
            case "crash":
                c.restart()
            case _:
                pass
        c.pump()
    c.rules = c.world.use(NodeEnergy).rules = msgspec.structs.replace(RULES, sleep_after_s=1e9)
    for _ in range(200):
        if not any(c.state(job) not in (State.COMPLETE, State.FAILED) for job in jobs):
            break
        for host, state in c.energy().items():
            if state and not c.nodes[host].connected:
                c.wake(host)
        for job in list(c.running()):
            c.end(job)
        c.tick(30)
    assert {c.state(job) for job in jobs} <= {State.COMPLETE}
