"""Random histories with gangs: whatever happens, none holds something for a part of its members.

The engine's own invariants say so after every step (`core.gangs.lifecycle`); here members are also compared with
what really executes.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from rota.core.gangs.gang_state import Gangs, open_members
from rota.core.jobs.job import Condition
from rota.core.states import LEASED, State
from tests.core import test_properties
from tests.core.gangs.lab import lab
from tests.core.machine import Entry, spec
from tests.core.test_properties import numbers
from tests.dose import histories

gang_specs = st.builds(
    lambda policy, retries, priority: {"on_member_failure": policy, "retries": retries, "priority": priority},
    st.sampled_from(["", "kill", "keep", "retry"]),
    st.sampled_from([0, 1, 2]),
    st.sampled_from([0, 0, 5]),
)


class GangHistories(test_properties.Histories):
    """Everything that happens to other jobs happens to gangs, too."""

    @initialize(seed=numbers, hosts=st.sampled_from([2, 3]), simple=st.booleans())
    def begin(self, seed: int, hosts: int, simple: bool) -> None:  # type: ignore[override]
        self.m = lab(hosts, seed=seed, simple=simple)
        self.gangs = 0

    @rule(size=st.integers(1, 3), its=gang_specs, parent=numbers, depends=st.sampled_from([False, False, True]))
    def add_gang(self, size: int, its: dict[str, object], parent: int, depends: bool) -> None:
        self.gangs += 1
        known = [id for id in range(1, self.m.world.next_job) if self._state(id) is not None]
        after = ((known[parent % len(known)], Condition.ANY, False),) if known and depends else ()
        entries = [
            Entry(
                f"gang {self.gangs} {n}", spec(gang=f"g{self.gangs}", name=f"n{n}", **its), after if not n else ()
            )
            for n in range(min(size, len(self.m.capacity)))
        ]
        self.m.send_chunk(entries, fresh=True)

    @rule(picks=st.lists(numbers, min_size=1, max_size=2), verb=st.sampled_from(["suspend", "resume"]))
    def pause(self, picks: list[int], verb: str) -> None:
        states = {"suspend": {State.RUNNING}, "resume": {State.SUSPENDED}}
        self.m.act(verb, *self._jobs(picks, *states[verb]))

    @invariant()
    def what_executes_was_placed_with_all_others(self) -> None:
        if not hasattr(self, "m") or (gangs := self.m.world.find(Gangs)) is None:
            return
        for gang in gangs.by_key.values():
            jobs = open_members(self.m.world, gang)
            if any(job.state is State.READY for job in jobs):
                held = [job for job in jobs if job.state in LEASED and job.lease is not None]
                assert all(
                    job.kill or job.preempted or (job.lease and (job.lease.broken or job.lease.ended))
                    for job in held
                ), f"gang {gang.name} holds something for a part of its members"

    def lift(self) -> None:
        suspended = [job.id for job in self.m.world.jobs.values() if job.state is State.SUSPENDED]
        if suspended:
            self.m.do("resume", *suspended)


TestGangHistories = GangHistories.TestCase
TestGangHistories.settings = histories(16, steps=50)
