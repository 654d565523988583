"""Random dependencies, live groups and crashes, compared with a model that was written from the rules alone.

The model keeps every job it ever saw and looks at all of them again after every step: it has no counts, no
indexes and no order of events to get wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from rota.core.jobs.job import Condition, Parent, Spec
from rota.core.jobs.outcome import Outcome
from rota.core.states import LEASED, State
from rota.core.world import NO_JOB, World
from rota.errors import BadInput, Bug, NotFound, RotaError
from tests.core.machine import Entry, Machine, spec
from tests.dose import half, histories

GROUPS = ["g0", "g1", "g2"]
BAD = ("failed", "cancelled")
OVER = ("complete", *BAD)


@dataclass
class Known:
    """A job as the rules see it. `state` waiting: dependent, blocked, ready or leased."""

    id: int
    spec: Spec
    after: list[tuple[Parent, Condition]]
    state: str = "waiting"
    tries: int = 0
    outdated: bool = False  #: the attempt that is out does not know of somebody who came later
    due: bool = False  #: held, and has a delay to wait for


@dataclass
class Model:
    jobs: dict[int, Known] = field(default_factory=dict)
    ghosts: dict[int, Known] = field(default_factory=dict)  #: removed
    known: set[str] = field(default_factory=set)  #: groups that had a member
    replaced: dict[int, str] = field(default_factory=dict)  #: jobs whose place others took → how they ended

    def members(self, group: str) -> list[Known]:
        return [job for job in self.jobs.values() if group in job.spec.dep_groups]

    # -- what a parent means

    def blocked(self, job: Known, leased: set[int]) -> bool:
        waits = job.state == "waiting" and job.id not in leased
        return waits and any(self.never(after, leased) for after in job.after)

    def never(self, after: tuple[Parent, Condition], leased: set[int]) -> bool:
        parent, condition = after
        jobs = self.members(parent) if isinstance(parent, str) else self._one(parent)
        for job in jobs:
            if condition is Condition.OK and job.state in BAD:
                return True
            if condition is Condition.NOT_OK and job.state == "complete":
                return True
            if self.blocked(job, leased):
                return True
        return False

    def content(self, after: tuple[Parent, Condition]) -> bool:
        parent, condition = after
        if isinstance(parent, str) and parent not in self.known:
            return False
        jobs = self.members(parent) if isinstance(parent, str) else self._one(parent)
        wanted = {Condition.OK: ("complete",), Condition.ANY: OVER, Condition.NOT_OK: BAD}[condition]
        return all(job.state in wanted for job in jobs)

    def _one(self, id: int) -> list[Known]:
        return [self.jobs[id]] if id in self.jobs else []

    def expected(self, job: Known, leased: set[int]) -> str:
        if job.state != "waiting":
            return job.state
        if job.id in leased:
            return "leased"
        if self.blocked(job, leased):
            return "blocked"
        return "ready" if all(map(self.content, job.after)) else "dependent"

    # -- growth

    def grow(self, groups: set[str], leased: set[int]) -> None:
        pending: list[Parent] = sorted(groups)
        while pending:
            parent = pending.pop()
            for job in list(self.jobs.values()):
                if not job.spec.live or all(each != parent for each, _condition in job.after):
                    continue
                if job.id in leased:
                    job.outdated = True
                elif job.state == "complete":
                    job.state, job.tries = "waiting", 0
                    pending += [job.id, *job.spec.dep_groups]

    # -- cycles

    def cyclic(self, new: list[Known], *, ghosts: bool) -> bool:
        everybody = {**self.jobs, **{job.id: job for job in new}, **(self.ghosts if ghosts else {})}

        def parents(node: Parent) -> Iterator[Parent]:
            if isinstance(node, str):
                yield from (job.id for job in everybody.values() if node in job.spec.dep_groups)
            elif node in everybody:
                yield from (parent for parent, _condition in everybody[node].after)

        done: set[Parent] = set()

        def visit(node: Parent, path: tuple[Parent, ...]) -> bool:
            if node in path:
                return True
            if node in done:
                return False
            found = any(visit(parent, (*path, node)) for parent in parents(node))
            done.add(node)
            return found

        return any(visit(job.id, ()) for job in new)

    # -- removing

    def waiting_for(self, id: int) -> set[int]:
        found = set()
        for job in self.jobs.values():
            if job.state in OVER:
                continue
            for parent, condition in job.after:
                through = isinstance(parent, str) and parent in self.jobs[id].spec.dep_groups
                if (parent == id or through) and not self.content((id, condition)):
                    found.add(job.id)
        return found


def reach_of(world: World) -> dict[int, set[str]]:
    """Job → groups that it waits for, itself or through others."""
    return {id: reach.all_groups() for id in world.ancestry if (reach := world.ancestry.get(id)) is not None}


def after_of(world: World, name: str) -> set[str]:
    """Groups that members of this one wait for."""
    return {group for reach in world.groups[name].after for group in reach.all_groups()}


def groups_of(world: World) -> dict[str, object]:
    return {
        name: (group.known, set(group.open), group.blocked, set(group.bad), group.complete, group.announced)
        for name, group in world.groups.items()
        if group.known
    }


def queue_of(world: World) -> list[tuple[int, int]]:
    """In order of rank. (What a job takes is learned anew, and may differ.)"""
    job_classes = world.placement._packing._job_classes.values()  # type: ignore[attr-defined]
    return sorted((job_class.key, job) for job_class in job_classes for job in job_class.jobs())


numbers = st.integers(0, 1000)
conditions = st.sampled_from([Condition.OK, Condition.OK, Condition.ANY, Condition.NOT_OK])
parents = st.tuples(st.sampled_from(["group", "group", "line", "job"]), numbers, conditions)
lines = st.tuples(
    st.lists(st.sampled_from(GROUPS), max_size=2, unique=True).map(tuple),
    st.lists(parents, max_size=2),
    st.sampled_from([True, True, True, False]),  # live
    st.sampled_from([True, True, False]),  # allow_empty_group
    st.sampled_from([0, 0, 1]),  # retries
)
submissions = st.lists(lines, min_size=1, max_size=4)
fates = st.sampled_from(["flow", "flow", "flow", "lost", "durable"])


class Groups(RuleBasedStateMachine):
    """Each rule is one thing that can happen; between them everything comes to rest."""

    @initialize(seed=numbers)
    def begin(self, seed: int) -> None:
        self.m = Machine(seed=seed, cpus=500)
        self.m.with_runner()
        self.model = Model()
        self.count = 0

    @property
    def leased(self) -> set[int]:
        return {job.id for job in self.m.world.jobs.values() if job.state in LEASED}

    def _step(self, fate: str, act: Callable[[], int], apply: Callable[[object], None]) -> None:
        """Ask for something, and let it be heard, be lost in a crash, or be written but not told."""
        if fate == "flow":
            number = act()
            self.m.pump()
            apply(self.m.replies[number])
        else:
            refused = len(self.m.refused)
            act()
            answer = self.m.refused[-1] if len(self.m.refused) > refused else None
            if fate == "durable":
                apply(answer)
                self.m.commit(perform=False)
            self._crash()
        self._compare()

    def _crash(self) -> None:
        self.m.crash()
        for runner in self.m.runners.values():
            if not runner.dead:
                self.m.join(runner)
        self.m.pump()

    def _pick(self, pick: int, *states: str) -> int | None:
        leased = self.leased
        found = [job.id for job in self.model.jobs.values() if self.model.expected(job, leased) in states]
        return found[pick % len(found)] if found else None

    # -- adding

    @rule(chosen=submissions, fate=fates)
    def add(self, chosen: list[tuple], fate: str) -> None:  # type: ignore[type-arg]
        leased = self.leased
        first = self.m.world.next_job
        entries, new = [], []
        joined = {name for groups, *_rest in chosen for name in groups}
        missing = False
        for n, (groups, wanted, live, allow_empty, retries) in enumerate(chosen):
            its = spec(dep_groups=groups, live=live, allow_empty_group=allow_empty, retries=retries)
            after, meant = [], []
            for kind, number, condition in wanted:
                if kind == "group":
                    name = GROUPS[number % len(GROUPS)]
                    after.append((name, condition, False))
                    missing |= not allow_empty and name not in self.model.known | joined
                    meant += [(each, condition) for each in self._meant(name, condition, live, chosen, first)]
                elif kind == "job" and self.model.jobs:
                    id = sorted(self.model.jobs)[number % len(self.model.jobs)]
                    after.append((id, condition, False))
                    meant.append((id, condition))
                elif kind == "line":
                    # Mostly earlier lines, sometimes later ones, which may make a cycle.
                    line = number % n if n and number < 900 else number % len(chosen)
                    after.append((line, condition, True))
                    meant.append((first + line, condition))
            self.count += 1
            entries.append(Entry(f"cmd {self.count}", its, tuple(after)))
            new.append(Known(first + n, its, list(dict.fromkeys(meant))))
        must = self.model.cyclic(new, ghosts=False)
        may = self.model.cyclic(new, ghosts=True)

        def apply(answer: object) -> None:
            if isinstance(answer, RotaError):
                if missing and isinstance(answer, NotFound):
                    return
                assert may, f"refused without a reason: {answer}"
                assert isinstance(answer, BadInput)
                assert "cycle" in str(answer) or "own group" in str(answer)
                return
            assert not must, "a cycle was accepted"
            assert not missing, "a group that never had a member was accepted"
            self.model.jobs.update({job.id: job for job in new})
            self.model.known |= joined
            self.model.grow(joined, leased)

        before = self._everything()
        self._step(fate, lambda: self.m.send_chunk(entries, fresh=True), apply)
        if first not in self.model.jobs and fate == "flow":
            after_it = self._everything()
            assert before == after_it, "a refused submission left something"

    @precondition(lambda self: self.model.known)
    @rule(pick=numbers, fate=fates)
    def somebody_joins(self, pick: int, fate: str) -> None:
        """A group that others may wait for grows."""
        groups = sorted(self.model.known)
        self.add([((groups[pick % len(groups)],), [], True, True, 0)], fate)

    @rule(pick=numbers, condition=conditions, group=st.sampled_from([(), ("g0",), ("g2",)]), fate=fates)
    def somebody_follows(self, pick: int, condition: Condition, group: tuple[str, ...], fate: str) -> None:
        """One more behind what is there, and one behind that."""
        first = (group, [("job" if pick % 2 else "group", pick, condition)], True, True, 0)
        self.add([first, ((), [("line", 0, Condition.OK)], True, True, 0)], fate)

    @precondition(lambda self: self.m.running())
    @rule(most=st.integers(1, 6))
    def what_runs_succeeds(self, most: int) -> None:
        for _each in range(most):
            if self.m.running():
                self.end(0, True)

    def _everything(self) -> object:
        world, stored = self.m.world, self.m.store.tables
        jobs = {id: (job.state, job.attempt, job.ready_at) for id, job in world.jobs.items()}
        return (
            jobs, dict(world.unmet_parents), deepcopy(world.blocked_by), deepcopy(world.children), reach_of(world),
            {name: after_of(world, name) for name, group in world.groups.items() if group.after},
            groups_of(world), queue_of(world),
            deepcopy(stored.jobs), set(stored.edges), dict(stored.dep_groups),
        )  # fmt: skip

    def _meant(
        self,
        name: str,
        condition: Condition,
        live: bool,
        chosen: list[tuple],  # type: ignore[type-arg]
        first: int,
    ) -> list[Parent]:
        """The group, or, for one that does not care who joins later, those who are in it now."""
        if live:
            return [name]
        now = self.model.members(name)
        if condition is Condition.NOT_OK and any(job.state == "complete" for job in now):
            return [name]  # which can never hold
        found: list[Parent] = [job.id for job in now if job.state != "complete"]
        found += [first + n for n, (groups, *_rest) in enumerate(chosen) if name in groups]
        return found or [name]

    # -- jobs end

    @precondition(lambda self: self.m.running())
    @rule(pick=numbers, ok=st.sampled_from([True, True, False]))
    def end(self, pick: int, ok: bool) -> None:
        running = sorted(self.m.running())
        id = running[pick % len(running)]
        self.m.end(id, exit_code=0 if ok else 3)
        self._ended(id, ok)
        self._compare()

    @precondition(lambda self: len(self.m.running()) > 1)
    @rule(ok=st.booleans())
    def all_end_at_once(self, ok: bool) -> None:
        """In one batch, and a crash before it is on disk: it is told again."""
        running = sorted(self.m.running())
        for id in running:
            model, seat = self.m.running()[id]
            started = model.busy[seat].started_at
            model.end(
                seat, Outcome(exit_code=0 if ok else 3, started_at=started, ended_at=self.m.wall), self.m.wall
            )
        for model in self.m.runners.values():
            model.report()
            self.m.hear(model)
        self._crash()
        for id in running:
            self._ended(id, ok)
        self._compare()

    def _ended(self, id: int, ok: bool) -> None:
        job = self.model.jobs[id]
        outdated, job.outdated = job.outdated, False
        if ok:
            job.state = "waiting" if outdated else "complete"
            return
        job.tries += 1
        job.state = "delayed" if job.tries <= job.spec.retries else "failed"

    @precondition(lambda self: self.leased)
    @rule()
    def the_runner_is_lost_and_confirmed_dead(self) -> None:
        leased = sorted(self.leased)
        runner = next(each for each in self.m.runners.values() if not each.dead)
        self.m.die(runner)
        self.m.advance(61.0)
        self._time_passed(61.0)
        self.m.pump()
        for busy in list(runner.busy):
            grant = runner.busy.pop(busy).grant
            runner.witness.end(grant.lease[0], grant.lease[1], ok=False)
        runner.journal.clear()
        runner.settled = True
        assert set(self.m.do("confirm-dead", *leased).changed) == set(leased)
        for id in leased:
            self._ended(id, False)
        self.m.with_runner()
        self._compare()

    @rule()
    def time_passes(self) -> None:
        self.m.advance(2000.0)
        self._time_passed(2000.0)
        for runner in self.m.runners.values():
            if runner.connected:
                runner.report()
        self.m.pump()
        self._compare()

    def _time_passed(self, seconds: float) -> None:
        """Delays last at most a minute after a first failure, and none of these jobs has a second."""
        for job in self.model.jobs.values():
            if job.state == "delayed" and seconds > 60:
                job.state = "waiting"
            job.due = job.due and seconds <= 60

    @rule()
    def crash(self) -> None:
        self._crash()
        self._compare()

    # -- people

    @rule(pick=numbers, fate=fates)
    def kill(self, pick: int, fate: str) -> None:
        id = self._pick(pick, "dependent", "blocked", "ready", "held", "delayed", "leased")
        if id is None:
            return

        def apply(_answer: object) -> None:
            job = self.model.jobs[id]
            job.state, job.outdated, job.due = "cancelled", False, False

        self._step(fate, lambda: self.m.act("kill", id), apply)

    @precondition(lambda self: self.m.running())
    @rule(pick=numbers)
    def kill_comes_too_late(self, pick: int) -> None:
        """The command succeeds before the kill arrives."""
        running = sorted(self.m.running())
        id = running[pick % len(running)]
        self.m.act("kill", id)
        model, seat = self.m.running()[id]
        model.end(seat, Outcome(exit_code=0, started_at=1.0, ended_at=self.m.wall), self.m.wall)
        self.m.pump()
        job = self.model.jobs[id]
        job.state = "cancelled" if job.outdated else "complete"
        job.outdated = False
        self._compare()

    @rule(pick=numbers, fate=fates)
    def hold(self, pick: int, fate: str) -> None:
        id = self._pick(pick, "dependent", "blocked", "ready", "delayed")
        if id is None:
            return

        def apply(_answer: object) -> None:
            job = self.model.jobs[id]
            job.due = job.state == "delayed"
            job.state = "held"

        self._step(fate, lambda: self.m.act("hold", id), apply)

    @rule(pick=numbers, fate=fates)
    def release(self, pick: int, fate: str) -> None:
        id = self._pick(pick, "held")
        if id is None:
            return

        def apply(_answer: object) -> None:
            job = self.model.jobs[id]
            job.state = "delayed" if job.due else "waiting"
            job.due = False

        self._step(fate, lambda: self.m.act("release", id), apply)

    @rule(pick=numbers, fate=fates)
    def retry(self, pick: int, fate: str) -> None:
        id = self._pick(pick, "failed", "cancelled")
        if id is None:
            return

        def apply(_answer: object) -> None:
            job = self.model.jobs[id]
            job.state, job.tries = "waiting", 0

        self._step(fate, lambda: self.m.act("retry", id), apply)

    @rule(pick=numbers, wanted=st.lists(parents, max_size=2), fate=fates)
    def redefine(self, pick: int, wanted: list[tuple[str, int, Condition]], fate: str) -> None:
        id = self._pick(pick, "dependent", "blocked", "ready", "held")
        if id is None:
            return
        job = self.model.jobs[id]
        after, meant, missing = [], [], False
        for kind, number, condition in wanted:
            if kind == "group":
                name = GROUPS[number % len(GROUPS)]
                after.append((name, condition))
                missing |= not job.spec.allow_empty_group and name not in self.model.known
                meant += [(each, condition) for each in self._meant(name, condition, job.spec.live, [], 0)]
            else:
                other = sorted(self.model.jobs)[number % len(self.model.jobs)]
                after.append((other, condition))
                meant.append((other, condition))
        new = replace(job, after=list(dict.fromkeys(meant)))
        started = any(row.outcome != "void" for row in self.m.store.attempts(id))
        must, may = (self.model.cyclic([new], ghosts=ghosts) for ghosts in (False, True))
        self.count += 1

        def apply(answer: object) -> None:
            if isinstance(answer, RotaError):
                assert not started
                assert may or (missing and isinstance(answer, NotFound)), f"refused without a reason: {answer}"
                return
            if started:
                return
            assert not must, "a cycle was accepted"
            assert not missing, "a group that never had a member was accepted"
            job.after = new.after
            self._has_another_command(id)

        before = self._everything()
        self._step(fate, lambda: self.m.modify(id, cmd=f"cmd {self.count}", after=tuple(after)), apply)
        if fate == "flow" and (started or must or missing):
            assert self._everything() == before, "a refused redefinition left something"

    def _has_another_command(self, job: int) -> None:
        """Nothing here knows jobs by their commands."""

    @rule(pick=numbers, cascade=st.booleans(), fate=fates)
    def remove(self, pick: int, cascade: bool, fate: str) -> None:
        id = self._pick(pick, "dependent", "blocked", "ready", "held", "delayed", *OVER)
        if id is None:
            return
        leased = self.leased
        removing = {id}
        if cascade:
            pending = [id]
            while pending:
                more = self.model.waiting_for(pending.pop()) - removing
                removing |= more
                pending += more
        refused = bool(removing & leased) or any(self.model.waiting_for(each) - removing for each in removing)

        def apply(answer: object) -> None:
            assert isinstance(answer, RotaError) == refused, answer
            if not refused:
                for each in removing:
                    self.model.ghosts[each] = self.model.jobs.pop(each)

        self._step(fate, lambda: self.m.act("remove", id, cascade=cascade, waiting=True), apply)

    # -- what holds

    def _compare(self) -> None:
        world, leased = self.m.world, self.leased
        assert not [error for error in self.m.refused if isinstance(error, Bug)]
        for id in range(1, world.next_job):
            known = self.model.jobs.get(id)
            if id in self.model.replaced:
                assert world.is_replaced(id)
                assert self.m.state(id).label == self.model.replaced[id], f"job {id} was replaced"
                continue
            if known is None:
                assert world.outcome(id) == NO_JOB, f"job {id} should not be there"
                continue
            state = self.m.state(id)
            seen = "leased" if state in LEASED else state.label
            assert seen == self.model.expected(known, leased), f"job {id}: {known} in {self.model}"
            if id in leased:
                assert (world.jobs[id].ready_at is None) == known.outdated, f"job {id}: {known}"
        self._recovers()

    def _recovers(self) -> None:
        """What is on disk gives the same world, however often it is read."""
        memory = self.m.world
        assert not self.m.committing
        for _each in range(2):
            disk = self.m.recovered()
            live = {id: job for id, job in memory.jobs.items() if memory.outcome(id) == 0}
            assert {id: (job.attempt, job.tries, job.due_at) for id, job in disk.jobs.items()} == {
                id: (job.attempt, job.tries, job.due_at) for id, job in live.items()
            }
            for id, job in live.items():
                assert disk.jobs[id].state is job.state or State.LOST in (job.state,)
                assert disk.jobs[id].after == job.after
                if job.state in LEASED:
                    assert (disk.jobs[id].ready_at is None) == (job.ready_at is None)
            assert disk.unmet_parents == memory.unmet_parents
            assert disk.blocked_by == memory.blocked_by
            assert disk.children == memory.children
            assert groups_of(disk) == groups_of(memory)
            assert queue_of(disk) == queue_of(memory)
            reached, known = reach_of(disk), reach_of(memory)
            for id, groups in reached.items():
                assert groups <= known[id]
            if not self.model.ghosts and not self.model.replaced:
                assert reached == known
                for name in disk.groups:
                    assert after_of(disk, name) == after_of(memory, name)

    def teardown(self) -> None:
        """Everything that can end, ends."""
        if not hasattr(self, "m"):
            return
        self.m.do("release", *[job.id for job in self.m.world.jobs.values() if job.state is State.HELD])
        self.m.run_out()
        empty = {name for name in GROUPS if not self.m.world.groups[name].known}
        for job in self.m.unfinished():
            # Only who waits for a group that nobody ever joined, directly or not, has a reason to.
            assert job.state is State.DEPENDENT
            assert empty


TestGroups = Groups.TestCase
TestGroups.settings = histories(half(60), steps=40)
