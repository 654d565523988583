"""Random histories of people, runners, faults and crashes: every promise holds after every step."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rota.core.attempts.noop_jobs import is_noop_runner
from rota.core.attempts.parts import parts_by_host
from rota.core.hooks.hook_records import ScriptState
from rota.core.jobs.job import Condition, Spec
from rota.core.jobs.outcome import Outcome
from rota.core.machines.machine_use import MachineUse
from rota.core.states import HOLDABLE, LEASED, LIVE, RETRYABLE, TERMINAL, WAITING, State
from rota.core.world import NO_JOB, World
from rota.errors import Bug
from rota.plan.size import Size
from tests.core.machine import GIB, Entry, Machine, spec
from tests.core.machines.rows import check_history
from tests.core.runners import ModelRunner
from tests.dose import half, histories

sizes = st.sampled_from(
    [
        Size(),
        Size(cpus=0, time_s=60.0),
        Size(cpus=50, mem=GIB),
        Size(cpus=250),
        Size(cpus=400, time_s=10.0),
        Size(mem=5 * GIB),
    ]
)
specs = st.builds(
    lambda size, priority, retries, backoff, over: spec(
        size=size, priority=priority, retries=retries, backoff_s=backoff, no_retry_over_s=over
    ),
    sizes,
    st.sampled_from([0, 0, 0, 10, 255]),
    st.sampled_from([0, 0, 1, 2]),
    st.sampled_from([30.0, 0.0]),
    st.sampled_from([None, None, 5.0]),
)
numbers = st.integers(0, 1000)
edges = st.lists(st.tuples(numbers, st.sampled_from(list(Condition)), st.booleans()), max_size=2) | st.just([])
entries = st.lists(st.tuples(st.sampled_from("abcdefghijklmnop"), specs, edges), min_size=1, max_size=5)
outcomes = st.sampled_from(["ok", "ok", "ok", "exit", "signal", "permanent"])


def view(world: World) -> dict[str, object]:
    """What recovery must give back, in a form that can be compared. Only memory knows of silence."""
    jobs = {}
    for job in world.jobs.values():
        ended = job.lease.ended if job.lease else None
        if job.state not in LEASED:
            state = job.state
        elif job.kill or job.preempted or ended:  # of what has ended nobody asks any more for whom
            state = State.FINISHING
        else:
            state = State.RUNNING if job.lease and job.lease.started_at is not None else State.SCHEDULED
        lease = (job.lease.token, job.lease.runner) if job.lease else None
        reason = job.reason if job.state not in LEASED else None
        left = {host: part.runner for host, part in parts_by_host(job).items()} if ended else {}
        jobs[job.id] = (
            job.key,
            job.cmd,
            job.after,
            job.spec,
            state,
            job.attempt,
            job.tries,
            job.due_at,
            reason,
            lease,
            job.kill,
            ended,
            left,
        )
    scripts = world.find(ScriptState) or ScriptState()
    return {
        "jobs": jobs,
        "waits": world.unmet_parents,
        "blocked": {id: by for id, by in world.blocked_by.items() if by},
        "children": {parent: set(entries) for parent, entries in world.children.items()},
        "outcomes": bytes(world.outcomes).rstrip(bytes([NO_JOB])),
        "finished": {group: counts[min(TERMINAL) :] for group, counts in world.counts.items() if any(counts)},
        "hosts": world.use(MachineUse).open,
        "scripts": (scripts.tries, scripts.epilogues),
        "leases": {id: sorted(runner.leases) for id, runner in world.runners.items() if runner.leases},
    }


class Histories(RuleBasedStateMachine):
    """Each rule is one thing that can happen."""

    @initialize(seed=numbers, hosts=st.sampled_from([1, 1, 2]), lines=entries)
    def begin(
        self, seed: int, hosts: int, lines: list[tuple[str, Spec, list[tuple[int, Condition, bool]]]]
    ) -> None:
        self.m = Machine(seed=seed, hosts=hosts)
        for host in self.m.capacity:
            self.m.join(self.m.start_runner(host))
        self.add(lines, None, False, False)
        self.m.pump()

    def _jobs(self, picks: list[int], *states: State) -> list[int]:
        """Jobs, mostly such that are in one of these states."""
        known = range(1, max(2, self.m.world.next_job))
        fitting = [id for id in known if self._state(id) in states] or known
        return list(dict.fromkeys((fitting if pick < 800 else known)[pick % len(fitting)] for pick in picks))

    def _state(self, id: int) -> State | None:
        return None if self.m.world.outcome(id) == NO_JOB else self.m.state(id)

    def _some(self, **wanted: bool) -> list[ModelRunner]:
        """The runners of which all of this is true."""
        return [
            runner
            for runner in self.m.runners.values()
            if all(bool(getattr(runner, name)) == value for name, value in wanted.items())
        ]

    def _runner(self, pick: int, **wanted: bool) -> ModelRunner:
        found = self._some(**wanted)
        return found[pick % len(found)]

    # -- people

    @rule(
        lines=entries,
        cut=st.sampled_from([None, None, 1, 2]),
        fresh=st.sampled_from([False, False, True, frozenset({0})]),
        check=st.sampled_from([False, False, False, True]),
    )
    def add(
        self,
        lines: list[tuple[str, Spec, list[tuple[int, Condition, bool]]]],
        cut: int | None,
        fresh: frozenset[int] | bool,
        check: bool,
    ) -> None:
        known = [id for id in range(1, self.m.world.next_job) if self._state(id) is not None]
        chunk = [
            Entry(
                cmd if cmd < "k" else [cmd, "--flag"],
                its,
                tuple(
                    # Mostly earlier lines, sometimes later ones, which may make a cycle.
                    (number % n if number < 900 else number % len(lines), condition, True)
                    if n and (local or not known)
                    else (known[number % len(known)] if number < 950 else number, condition, False)
                    for number, condition, local in after
                    if known or n
                ),
            )
            for n, (cmd, its, after) in enumerate(lines)
        ]
        if cut is None or cut >= len(chunk):
            self.m.send_chunk(chunk, fresh=fresh, check=check)
        else:
            name = f"u{self.m.asker().n}"
            self.m.send_chunk(chunk[:cut], submission=name, last=False, fresh=fresh, check=check)
            self.unfinished_chunks.append((name, chunk[cut:], fresh, check))

    @rule(count=st.integers(5, 12), its=specs, which=numbers)
    def add_many_short_ones(self, count: int, its: Spec, which: int) -> None:
        """Equal jobs that end in quick succession: leases are sent ahead of their seats."""
        self.m.send_chunk([Entry("short", its)] * count, fresh=True)
        for _each in range(6):
            self.everything_flows_and_a_command_ends(which, "ok")

    @property
    def unfinished_chunks(self) -> list[tuple[str, list[Entry], frozenset[int] | bool, bool]]:
        return self.__dict__.setdefault("_chunks", [])

    @precondition(lambda self: self.unfinished_chunks)
    @rule(finish=st.sampled_from([True, True, False]))
    def end_upload(self, finish: bool) -> None:
        name, rest, fresh, check = self.unfinished_chunks.pop(0)
        if finish:
            self.m.send_chunk(rest, submission=name, fresh=fresh, check=check)
        else:
            self.m.drop(name)

    @rule(
        verb=st.sampled_from(["kill", "kill", "hold", "release", "release", "retry", "retry", "remove"]),
        picks=st.lists(numbers, min_size=1, max_size=3),
        cascade=st.booleans(),
    )
    def act(self, verb: str, picks: list[int], cascade: bool) -> None:
        states = {"release": {State.HELD}, "retry": RETRYABLE, "hold": HOLDABLE, "kill": LIVE, "remove": WAITING}
        jobs = self._jobs(picks, *states[verb])
        self.m.act(verb, *jobs, **({"cascade": cascade} if verb == "remove" else {}))

    @rule(
        picks=st.lists(numbers, min_size=1, max_size=3),
        cmd=st.none() | st.sampled_from([*"abcdef", ["k", "--flag"]]),
        cwd=st.none() | st.sampled_from(["/home/ann", "/elsewhere"]),
        after=st.none() | edges,
        its=st.none() | specs,
    )
    def redefine(
        self,
        picks: list[int],
        cmd: str | list[str] | None,
        cwd: str | None,
        after: list[tuple[int, Condition, bool]] | None,
        its: Spec | None,
    ) -> None:
        fields: dict[str, object] = {} if cwd is None else {"cwd": cwd}
        if its is not None:
            fields |= {"size": its.size, "priority": its.priority}
        known = range(1, self.m.world.next_job + 1)
        parents = None if after is None else tuple((known[n % len(known)], how) for n, how, _local in after)
        self.m.modify(*self._jobs(picks, *WAITING), cmd=cmd, after=parents, **fields)

    @precondition(lambda self: any(job.state is State.LOST for job in self.m.world.jobs.values()))
    @rule(picks=st.lists(numbers, min_size=1, max_size=3))
    def confirm_dead(self, picks: list[int]) -> None:
        # Whoever confirms is right: nothing of these jobs executes.
        self.m.act("confirm-dead", *[job for job in self._jobs(picks, State.LOST) if not self._may_execute(job)])

    def _may_execute(self, job: int) -> bool:
        """Does it, or could a lease that is at a runner, or on its way there, begin?"""
        found = self.m.world.jobs.get(job)
        if found is None or found.lease is None:
            return False
        holders = {part.runner for part in (found.lease.parts or {}).values() if part.runner}
        if found.lease.ended is None:
            holders.add(found.lease.runner)
        if any(map(is_noop_runner, holders)):
            return True  # it is never lost: its runner is no process
        left = job in self.m.witness.running or any(job == each for each, _host in self.m.witness.parts)
        return left or not all(self.m.runners[name].dead for name in holders)

    # -- the disk, the clock and the manager's death

    @precondition(lambda self: self.m.committing)
    @rule()
    def commit(self) -> None:
        self.m.commit()

    @rule(seconds=st.sampled_from([0.01, 1.0, 31.0, 61.0, 95.0, 2000.0]))
    def time_passes(self, seconds: float) -> None:
        self.m.advance(seconds)

    @rule()
    def a_week_passes(self) -> None:
        """Runners without contact for so long have ended their jobs, and keep the records."""
        for runner in self.m.runners.values():
            if runner.connected:
                self.m.disconnect(runner)
            runner.waiting.clear()
            runner.close_parts(list(runner.parts))
            for seat in list(runner.busy):
                runner.end(seat, Outcome(reason="lost", message="orphaned", ended_at=self.m.wall), self.m.wall)
        for _tick in range(2):
            self.m.advance(7 * 86400.0 + 601.0)

    @precondition(lambda self: self._some(connected=True))
    @rule(pick=numbers, its=specs, which=numbers)
    def crash_before_a_start_is_heard_of(self, pick: int, its: Spec, which: int) -> None:
        """The runner dies as well; its successor comes before it is settled."""
        self.m.pump()
        self.m.send_chunk([Entry("unheard", its)] * 3, fresh=True)
        self.m.commit()
        runner = self._runner(pick, connected=True)
        runner.deliver()
        self.crash(False)
        self.m.die(runner, noticed=False)
        if runner.host in self._vacant():
            self.m.join(self.m.start_runner(runner.host))

    @rule(durable=st.booleans())
    def crash(self, durable: bool) -> None:
        """`durable`: the batch reached the disk, but nobody was told."""
        if durable:
            self.m.commit(perform=False)
        self.unfinished_chunks.clear()
        self.m.crash()
        assert view(self.m.recovered()) == view(self.m.world)

    # -- runners

    @precondition(lambda self: self._vacant())
    @rule(pick=numbers)
    def runner_starts(self, pick: int) -> None:
        vacant = self._vacant()
        self.m.join(self.m.start_runner(vacant[pick % len(vacant)]))

    def _vacant(self) -> list[str]:
        """Hosts on which no runner lives."""
        return sorted(self.m.capacity.keys() - {runner.host for runner in self._some(dead=False)})

    @precondition(lambda self: self._some(connected=False, dead=False))
    @rule(pick=numbers)
    def runner_joins_again(self, pick: int) -> None:
        self.m.join(self._runner(pick, connected=False, dead=False))

    @precondition(lambda self: self._some(connected=True))
    @rule(pick=numbers, lines=entries)
    def runner_reconnects_while_work_is_on_its_way(
        self, pick: int, lines: list[tuple[str, Spec, list[tuple[int, Condition, bool]]]]
    ) -> None:
        self.add(lines, None, True, False)
        runner = self._runner(pick, connected=True)
        self.m.disconnect(runner)
        self.m.join(runner)

    @precondition(lambda self: self._some(connected=True))
    @rule(pick=numbers)
    def runner_disconnects(self, pick: int) -> None:
        self.m.disconnect(self._runner(pick, connected=True))

    @precondition(lambda self: self._some(dead=False))
    @rule(pick=numbers, noticed=st.sampled_from([True, True, False]))
    def runner_dies(self, pick: int, noticed: bool) -> None:
        self.m.die(self._runner(pick, dead=False), noticed=noticed)

    @precondition(lambda self: self._some(dead=True))
    @rule(pick=numbers, whole=st.sampled_from([True, True, False]))
    def runner_is_settled(self, pick: int, whole: bool) -> None:
        self.m.settle(self._runner(pick, dead=True), whole=whole)

    @precondition(lambda self: self._some(incoming=True))
    @rule(pick=numbers, count=st.sampled_from([1, 1 << 30]))
    def runner_receives(self, pick: int, count: int) -> None:
        self._runner(pick, incoming=True).deliver(count)

    @precondition(lambda self: self._some(connected=True))
    @rule(pick=numbers, report=st.booleans(), repeat=st.booleans())
    def runner_speaks(self, pick: int, report: bool, repeat: bool) -> None:
        runner = self._runner(pick, connected=True)
        if report:
            runner.report()
        if repeat:
            runner.repeat()

    @precondition(lambda self: self._some(outgoing=True))
    @rule(pick=numbers, count=st.sampled_from([1, 2, 1 << 30]))
    def manager_hears(self, pick: int, count: int) -> None:
        self.m.hear(self._runner(pick, outgoing=True), count)

    @precondition(lambda self: self._some(busy=True, dead=False))
    @rule(pick=numbers, which=numbers, outcome=outcomes)
    def command_ends(self, pick: int, which: int, outcome: str) -> None:
        runner = self._runner(pick, busy=True, dead=False)
        seat = list(runner.busy)[which % len(runner.busy)]
        times = {"started_at": runner.busy[seat].started_at, "ended_at": self.m.wall}
        how = {
            "ok": Outcome(exit_code=0, **times),
            "exit": Outcome(exit_code=3, **times),
            "signal": Outcome(signal=9, **times),
            "permanent": Outcome(exit_code=127, reason="not_found", permanent=True, **times),
        }
        runner.end(seat, how[outcome], self.m.wall)

    @precondition(lambda self: self._some(waiting=True, dead=False))
    @rule(pick=numbers, which=numbers)
    def lease_is_handed_back(self, pick: int, which: int) -> None:
        runner = self._runner(pick, waiting=True, dead=False)
        runner.give_back(which % len(runner.waiting))

    @rule(which=numbers, outcome=outcomes)
    def everything_flows_and_a_command_ends(self, which: int, outcome: str) -> None:
        self.m.pump()
        if self._some(busy=True, dead=False):
            self.command_ends(which, which, outcome)

    @rule(seconds=st.sampled_from([1.0, 95.0]))
    def everything_flows_for_a_while(self, seconds: float) -> None:
        self.m.pump()
        self.m.advance(seconds)
        for runner in self._some(connected=True):
            runner.report()
        self.m.pump()

    # -- what holds

    @invariant()
    def nothing_is_our_bug(self) -> None:
        if hasattr(self, "m"):
            assert not [error for error in self.m.refused if isinstance(error, Bug)]

    @invariant()
    def a_key_names_a_job_that_has_it(self) -> None:
        if hasattr(self, "m"):
            world = self.m.world
            assert all(world.jobs[id].key == key for key, id in world.keys.items())

    @invariant()
    def the_history_of_every_machine_is_whole(self) -> None:
        if hasattr(self, "m"):
            check_history(self.m)

    @precondition(lambda self: not self.m.world.uploads)
    @rule()
    def recovery_gives_back_what_memory_has(self) -> None:
        while self.m.commit():
            pass
        recovered = view(self.m.recovered())
        memory = view(self.m.world)
        memory["jobs"] = {id: row for id, row in memory["jobs"].items() if self.m.world.outcome(id) == 0}
        for part in memory:
            assert recovered[part] == memory[part], part

    def teardown(self) -> None:
        """After every fault is healed, everything runnable ends."""
        if not hasattr(self, "m"):
            return
        for name, *_rest in self.unfinished_chunks:
            self.m.drop(name)
        self.m.heal()
        self.lift()
        held = [job.id for job in self.m.world.jobs.values() if job.state is State.HELD]
        self.m.do("release", *held)
        self.m.run_out()
        self.judge()
        for id in self.m.acknowledged - self.m.removed:
            assert self.m.world.outcome(id) != NO_JOB

    def lift(self) -> None:
        """Nothing that a person set keeps anybody from running."""

    def judge(self) -> None:
        assert self.m.unfinished() == []


TestHistories = Histories.TestCase
TestHistories.settings = histories(half(60), steps=60)
