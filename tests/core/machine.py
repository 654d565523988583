"""Drives the pure engine without an event loop: clocks, randomness, disk and runners are plain objects.

Batches are decided, committed and performed as the manager does it, one being committed while the
next gathers. A crash loses everything that was not committed, and everything that was not performed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec

from rota.core import effects as e
from rota.core import events
from rota.core.accounts.fair_share_usage import kept_hours
from rota.core.answers import Acted, Added, entries_of, kept_of
from rota.core.attempts.noop_jobs import running_noops
from rota.core.engine import Engine
from rota.core.engine_settings import EngineSettings
from rota.core.feature import Features
from rota.core.features import BUILT_IN
from rota.core.invariants import broken
from rota.core.jobs.command import Command
from rota.core.jobs.dependencies import verdict
from rota.core.jobs.job import After, Condition, Job, Parent, Spec
from rota.core.jobs.outcome import Outcome
from rota.core.recovery.recover import recover
from rota.core.recovery.starting import starting_changes
from rota.core.restart import Restart, first_seat
from rota.core.rows import SpecRow
from rota.core.states import LEASED, RETRYABLE, TERMINAL, State
from rota.core.stored import StoreSnapshot, job_from_row
from rota.core.submit.identity import key_maker
from rota.core.turn import Batch, Turn
from rota.core.world import NO_JOB, World, evict_finished
from rota.errors import RotaError
from rota.manager.submit.redefinition import look_up_redefinition
from rota.plan.dispatch.planning import Planning
from rota.plan.placement.placement import Placement
from rota.plan.size import Capacity
from rota.pool_names import LOCAL
from rota.store.base import Brief
from rota.store.memory.store import MemoryStore
from tests.core.runners import Grant, ModelRunner, Report, Witness

GIB = 1 << 30
LOST_AFTER_S = 60.0


@dataclass(frozen=True)
class Entry:
    """One line of an input."""

    cmd: Command
    spec: Spec
    after: tuple[tuple[Parent, Condition, bool], ...] = ()  #: (parent, condition, local)
    element: tuple[int, int] | None = None  #: (number of the array, index)
    input_bytes: int | None = None


def spec(**fields: Any) -> Spec:
    return Spec(**{"user": "ann", "cwd": "/home/ann", "env": 1, **fields})


@dataclass
class Upload:
    """What the manager remembers of a submission whose chunks are arriving."""

    specs: list[Spec] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    count: int = 0


class Machine:
    """A manager without a process, its disk, and the runners that talk to it."""

    def __init__(
        self,
        *,
        cpus: int = 400,
        mem: int = 8 * GIB,
        hosts: int = 1,
        seed: int = 0,
        features: Features = BUILT_IN,
        placement: Callable[[int], Placement] = lambda first_seat: Planning(first_seat=first_seat),
    ) -> None:
        self.wall, self.mono = 1000.0, 10.0
        self.features = features
        self._placement = placement
        self.random = Random(seed)
        self.capacity = {f"h{n}": Capacity(cpus=cpus, mem=mem, disk=GIB, pool=LOCAL) for n in range(1, hosts + 1)}
        self.store = MemoryStore()
        self.witness = Witness(capacity=self.capacity, opening=self._opening)
        self.runners: dict[str, ModelRunner] = {}
        self.replies: dict[int, Any] = {}  #: what was answered to each request, by its number
        self.acknowledged: set[int] = set()
        self.removed: set[int] = set()
        self.refused: list[RotaError] = []
        self.recorded: set[tuple[int, int]] = set()  #: attempts whose end, or voiding, is on disk
        self._questions: set[int] = set()  #: requests that only ask what would happen
        self._requests = 0
        self._generation = 0
        self._spec_ids: dict[Spec, int] = {}
        self.uploads: dict[str, Upload] = {}
        self._boot()

    # ------------------------------------------------------------------ the manager

    def _boot(self) -> None:
        self._generation += 1
        self.open, self.committing = Batch(), None
        self.uploads.clear()
        snapshot = self.store.load()
        self.store.commit(starting_changes(snapshot))
        self.world = self._recover(snapshot)
        special = dict.fromkeys(("deploy", "cosystem"), next(iter(self.capacity), ""))
        self.world.settings = EngineSettings(lost_after_s=LOST_AFTER_S, special_hosts=special)
        self.engine = Engine(self.world, features=self.features)
        self._spec_ids = {each: n for n, each in snapshot.specs.items()}

    def recovered(self) -> World:
        """A new world from what is on disk."""
        snapshot = self.store.load()
        starting_changes(snapshot)  # only for what it removes from the snapshot
        return self._recover(snapshot)

    def _recover(self, snapshot: StoreSnapshot) -> World:
        first, end = kept_hours(self.wall)
        return recover(
            self._placement(first_seat(self._generation)),
            Restart(
                snapshot=snapshot,
                wall=self.wall,
                mono=self.mono,
                generation=self._generation,
                hosts=self.capacity,
                usage=self.store.accounts(first=first, end=end).rows,
            ),
            features=self.features,
        )

    def crash(self) -> None:
        """kill -9 of the manager, and its start. Everybody has to connect again."""
        for runner in self.runners.values():
            runner.disconnect()
            runner.joins = 0
        self._boot()
        self.check()
        for id in self.acknowledged - self.removed:
            assert self.world.outcome(id) != NO_JOB, f"job {id} was acknowledged and is lost"

    def happened(self, *what: events.Event) -> None:
        """Let the engine decide about these, in the batch that is open."""
        effects_before = len(self.open.effects)
        turn = Turn(wall=self.wall, mono=self.mono, random=self.random.random, batch=self.open)
        self.refused += self.engine.step(list(what), turn)
        self._leases_are_due(self.open.effects[effects_before:])
        self.check()
        if self.committing is None and self.open:
            self.committing, self.open = self.open, Batch()

    def _leases_are_due(self, effects: list[e.Effect]) -> None:
        for effect in effects:
            if isinstance(effect, e.SendWork):
                for job in effect.jobs:
                    for after in job.after:
                        assert verdict(self.world, after.parent, after.condition)[0], (
                            f"job {job.id} is leased before {after.parent} satisfies it"
                        )

    def check(self) -> None:
        wrong = broken(self.world)
        assert wrong == [], wrong

    def commit(self, *, perform: bool = True) -> bool:
        """Bring the batch that waits for the disk there; then do what it asks for. False: there is none."""
        batch, self.committing = self.committing, None
        if batch is None:
            return False
        self._record(batch)
        self.store.commit(batch.changes)
        self._nothing_outlives_its_record()
        if perform:
            for effect in batch.effects:
                self._perform(effect)
            if batch.leaving:  # nothing else here changes the world, which was checked after its last step
                evict_finished(self.world, batch.leaving)
                self.check()
        if self.open:
            self.committing, self.open = self.open, Batch()
        return True

    def _record(self, batch: Batch) -> None:
        voided = {(row.job, row.number) for row in batch.changes.voids}
        assert not voided & self.witness.executed, f"said to be never executed, but was: {voided}"
        ended = [(row.job, row.number) for row in batch.changes.ends]
        both = [*ended, *voided]
        assert len(set(both)) == len(both), "an attempt's end is recorded twice in one batch"
        assert not self.recorded.intersection(both), "an attempt's end is recorded twice"
        self.recorded.update(both)
        for row in batch.changes.ends:
            job = self.world.jobs.get(row.job)
            if row.outcome == "complete" and not (job is not None and job.spec.done_at_walltime):
                assert (row.job, row.number) in self.witness.succeeded, f"job {row.job} did not succeed"

    def _nothing_outlives_its_record(self) -> None:
        for row in self.store.jobs(list(self.witness.running)):
            assert row.state not in TERMINAL, f"job {row.id} executes after its terminal record"
        for row in self.store.jobs([job for job, _host in self.witness.parts]):
            assert row.state in LEASED or self._is_leased(row.id), f"job {row.id} has a part and no lease"

    def _is_leased(self, job: int) -> bool:
        """Rows of jobs tell of what is not routine; of a new lease only the row of its attempt does."""
        return any(attempt.outcome is None for attempt in self.store.attempts(job))

    def _perform(self, effect: e.Effect) -> None:
        match effect:
            case e.SendReply(to, body):
                self.replies[to.n] = body
                if isinstance(body, Added) and to.n not in self._questions:
                    self.acknowledged.update(body.added)
            case e.Refuse(to, error):
                self.replies[to.n] = error
            case e.SendRules(runner, leases):
                self.runners[runner].rule(leases, self.wall)
            case e.SendWork(runner):
                self._send_work(self.runners[runner], effect)
            case e.SendParts(runner, jobs, leases):
                self._send_parts(self.runners[runner], jobs, leases)
            case e.CloseParts(runner, leases):
                model = self.runners[runner]
                model.receive(lambda: model.close_parts(leases))
            case e.AcknowledgeReport(runner, seq):
                model = self.runners[runner.removeprefix("settle:")]
                if runner.startswith("settle:"):
                    model.settled = True
                else:
                    model.receive(lambda: model.acknowledge(seq))
            case e.KillAttempts(runner, leases):
                model = self.runners[runner]
                model.receive(lambda: model.kill(leases, self.wall))
            case e.SuspendAttempts(runner, leases, on):
                model = self.runners[runner]
                model.receive(lambda: model.pause(leases, on, self.wall))
            case e.RecallLeases(runner, leases):
                model = self.runners[runner]
                model.receive(lambda: model.recall(leases))
            case _:
                pass

    def _send_work(self, model: ModelRunner, work: e.SendWork) -> None:
        if not model.ruled:
            return
        grants = [
            Grant((-job.spec.priority, job.id), lease, job.spec, job.size, job.lease.given if job.lease else None)
            for job, lease in zip(work.jobs, work.leases, strict=True)
        ]
        for grant in grants:
            assert self.store.attempts(grant.lease[0])[-1].number >= grant.lease[1], "sent before it was on disk"
        seats = [(seat.seat, seat.size) for seat in work.seats]
        model.receive(lambda: model.take_work(seats, grants, self.wall))

    def _send_parts(self, model: ModelRunner, jobs: list[Job], leases: list[tuple[int, int, int]]) -> None:
        for job, lease in zip(jobs, leases, strict=True):
            if job.lease is None or job.lease.token != lease[2] or job.lease.ended is not None:
                continue  # it moved on before it was sent
            given = job.lease.given
            assert given is not None
            assert self.store.attempts(lease[0])[-1].number >= lease[1], "sent before it was on disk"
            model.receive(lambda lease=lease, job=job, given=given: model.open_part(lease, job.spec, given))

    def advance(self, seconds: float) -> None:
        """Time passes; runners that hold nothing touch meanwhile, the others only when they report."""
        self.wall += seconds
        self.mono += seconds
        for model in self.runners.values():
            known = self.world.runners.get(model.id)
            if model.connected and known is not None and not known.leases:
                self.happened(Report(0).event(model.id))
        self.happened(events.TimerFired())

    # ------------------------------------------------------------------ what people ask

    def asker(self) -> events.Asker:
        self._requests += 1
        return events.Asker(connection=1, n=self._requests, user="ann")

    def send_chunk(
        self, entries: list[Entry], *, submission: str = "", last: bool = True, first: int | None = None,
        lines: list[int] | None = None, **flags: Any,
    ) -> int:  # fmt: skip
        """One chunk of a submission; the number of the request."""
        by = self.asker()
        if flags.get("check"):
            self._questions.add(by.n)
        submission = submission or f"s{by.n}"
        upload = self.uploads.get(submission)
        if upload is None or first == 0:
            upload = self.uploads[submission] = Upload()
        first = upload.count if first is None else first
        keys, spec_of, new = [], [], []
        for entry in entries:
            if entry.spec not in upload.specs:
                upload.specs.append(entry.spec)
            if entry.spec not in self._spec_ids:
                self._spec_ids[entry.spec] = len(self._spec_ids) + 1
                new.append(SpecRow(self._spec_ids[entry.spec], msgspec.json.encode(entry.spec).decode()))
            spec_of.append(upload.specs.index(entry.spec))
            maker = key_maker(user=entry.spec.user, cwd=None if entry.spec.scratch else entry.spec.cwd)
            index = entry.element[1] if entry.element else None
            key = maker(entry.cmd, 0, index)
            keys.append(maker(entry.cmd, upload.seen[key], index))
            upload.seen[key] += 1
        known = self.store.known_keys("ann", keys)
        again = [id for id, state in known.values() if state in RETRYABLE]
        namesakes: dict[str, list[events.FormerJob]] = {}
        if flags.get("rerun"):
            for brief in self.store.namesakes(keys):
                namesakes.setdefault(brief.key, []).append(self._former(brief))
        complete = [id for id, state in known.values() if state == State.COMPLETE]
        source = flags.get("input", "") if last else ""
        before = self.store.last_of_input("ann", source) if source else None
        flags["input"] = source
        flags["previous"] = entries_of(before.answer) if before is not None and before.answer else []
        flags["kept"] = kept_of(before.answer) if before is not None and before.answer else []
        bad = [id for id in [*flags["previous"], *flags["kept"]] if self.world.outcome(id) in RETRYABLE]
        flags["dropped"] = {each.id: self._former(each) for each in self.store.briefs(bad)}
        olds = [old.id for each in namesakes.values() for old in each]
        if submission in self.world.uploads:
            olds += [old.id for each in self.world.uploads[submission].replacing.values() for old in each]
        upload.count += len(entries)
        if last:
            self.uploads.pop(submission, None)
        self.happened(
            events.LibraryGrew(specs=new, envs=[]),
            events.ChunkArrived(
                by=by, submission=submission, first=first, cmds=[entry.cmd for entry in entries], keys=keys,
                specs=list(upload.specs), spec_ids=[self._spec_ids[each] for each in upload.specs],
                spec_of=spec_of, lines=lines,
                after=[
                    events.EntryAfter(first + n, parent, condition, local)
                    for n, entry in enumerate(entries)
                    for parent, condition, local in entry.after
                ],
                known=known, loaded=self.load(again), last=last,
                elements={first + n: entry.element for n, entry in enumerate(entries) if entry.element},
                inputs={
                    first + n: entry.input_bytes
                    for n, entry in enumerate(entries)
                    if entry.input_bytes is not None
                },
                dependents=self._complete_dependents(upload) if last else {},
                namesakes=namesakes, formers={each.id: self._former(each) for each in self.store.briefs(complete)},
                followers=self.load(self.store.followers(olds)) if last and olds else {}, **flags,
            ),
        )  # fmt: skip
        return by.n

    def _former(self, brief: Brief) -> events.FormerJob:
        specs = {n: each for each, n in self._spec_ids.items()}
        return events.FormerJob(brief.id, brief.key, specs[brief.spec_id], brief.after)

    def _complete_dependents(self, upload: Upload) -> dict[int, Job]:
        """As the manager does it: complete jobs on disk that groups of this submission may re-open."""
        found: dict[int, Job] = {}
        pending: list[Parent] = sorted({name for each in upload.specs for name in each.dep_groups})
        while pending:
            loaded = self.load([id for id in self.store.dependents(pending) if id not in found])
            complete = {id: job for id, job in loaded.items() if job.state is State.COMPLETE}
            found |= complete
            pending = [*complete, *sorted({name for job in complete.values() for name in job.spec.dep_groups})]
        return found

    def drop(self, submission: str) -> None:
        """The rest of a submission will not come."""
        self.uploads.pop(submission, None)
        self.happened(events.UploadDropped(submission=submission))

    def load(self, ids: list[int]) -> dict[int, Job]:
        specs = {n: each for each, n in self._spec_ids.items()}
        return {row.id: job_from_row(row, specs[row.spec_id]) for row in self.store.jobs(ids)}

    def modify(
        self,
        *ids: int,
        cmd: Command | None = None,
        after: tuple[tuple[Parent, Condition], ...] | None = None,
        input_bytes: int | None = None,
        **fields: Any,
    ) -> int:
        """Change fields of jobs, perhaps also what they are; the number of the request."""
        by, loaded, specs, rows = self.asker(), self.load(list(ids)), {}, []
        jobs = [job for id in ids if (job := self.world.jobs.get(id) or loaded.get(id)) is not None]
        for job in jobs:
            new = msgspec.structs.replace(job.spec, **fields)
            if new not in self._spec_ids:
                self._spec_ids[new] = len(self._spec_ids) + 1
                rows.append(SpecRow(self._spec_ids[new], msgspec.json.encode(new).decode()))
            specs[job.spec_id] = (self._spec_ids[new], new)
        redefinition = None
        if cmd is not None or after is not None or not {"cwd", "env"}.isdisjoint(fields):
            given = None if after is None else tuple(After(*each) for each in after)
            redefinition = look_up_redefinition(self.store, jobs, specs, cmd=cmd, after=given, load=self.load)
        self.happened(
            events.LibraryGrew(specs=rows, envs=[]),
            events.JobsModified(
                by=by, jobs=list(ids), loaded=loaded, specs=specs, fields=sorted(fields), input_bytes=input_bytes,
                redefinition=redefinition,
            ),
        )  # fmt: skip
        return by.n

    def act(self, verb: str, *ids: int, **flags: Any) -> int:
        """kill, hold, release, retry, remove, confirm-dead; the number of the request."""
        by, jobs = self.asker(), list(ids)
        match verb:
            case "kill":
                self.happened(events.JobsKilled(by=by, jobs=jobs))
            case "hold":
                self.happened(events.JobsHeld(by=by, jobs=jobs))
            case "release":
                self.happened(events.JobsReleased(by=by, jobs=jobs))
            case "retry":
                self.happened(events.JobsRetried(by=by, jobs=jobs, loaded=self.load(jobs)))
            case "remove":
                before = {id for id in range(self.world.next_job) if self.world.outcome(id) != NO_JOB}
                flags = {"named": frozenset(jobs), **flags}
                self.happened(events.JobsRemoved(by=by, jobs=jobs, loaded=self.load(jobs), **flags))
                self.removed |= {id for id in before if self.world.outcome(id) == NO_JOB}
            case "confirm-dead":
                self.happened(events.DeathConfirmed(by=by, jobs=jobs))
            case "suspend":
                self.happened(events.JobsSuspended(by=by, jobs=jobs, **flags))
            case "resume":
                self.happened(events.JobsResumed(by=by, jobs=jobs))
            case "walltime":
                self.happened(*(events.WalltimeAsked(by=by, job=job, **flags) for job in jobs))
            case _:
                raise ValueError(verb)
        return by.n

    # ------------------------------------------------------------------ runners

    def start_runner(self, host: str = "h1") -> ModelRunner:
        """A new runner process; it still has to join."""
        model = ModelRunner(f"r{len(self.runners) + 1}", host, self.witness)
        self.runners[model.id] = model
        return model

    def join(self, model: ModelRunner) -> None:
        self.happened(model.join())

    def disconnect(self, model: ModelRunner) -> None:
        model.disconnect()
        self.happened(events.RunnerParted(runner=model.id))

    def die(self, model: ModelRunner, *, noticed: bool = True) -> None:
        model.die()
        if noticed:
            self.happened(events.RunnerParted(runner=model.id))

    def settle(self, model: ModelRunner, *, whole: bool = True) -> None:
        self.happened(model.settle(f"settle:{model.id}", self.wall, whole=whole))

    def hear(self, model: ModelRunner, count: int = 1 << 30) -> None:
        """Take the oldest messages of a runner off the wire."""
        said, model.outgoing = model.outgoing[:count], model.outgoing[count:]
        for event in said:
            self.happened(event)

    # ------------------------------------------------------------------ shortcuts for examples

    def pump(self) -> None:
        """Commit, perform and deliver until nothing moves any more. Jobs that run go on running."""
        for _round in range(10_000):
            moved = self.commit()
            for model in self.runners.values():
                moved |= bool(model.incoming)
                model.deliver()
                if model.connected and model.draft:
                    model.report()
                moved |= bool(model.outgoing)
                self.hear(model)
            if not moved:
                return
        raise AssertionError("it never comes to rest")

    def with_runner(self) -> ModelRunner:
        model = self.start_runner()
        self.join(model)
        self.pump()
        return model

    def add(self, *cmds: Command, after: tuple[tuple[Parent, Condition, bool], ...] = (), **fields: Any) -> Added:
        """Add commands that share one specification and pump; the answer, or the refusal raised."""
        flags = {
            name: fields.pop(name)
            for name in ("fresh", "rerun", "input", "check", "allow_unsatisfiable")
            if name in fields
        }
        input_bytes = fields.pop("input_bytes", None)
        entries = [Entry(cmd, spec(**fields), after, input_bytes=input_bytes) for cmd in cmds]
        return self.answer(self.send_chunk(entries, **flags))

    def add_quietly(self, *cmds: Command, **fields: Any) -> None:
        """The same, but nothing is on disk yet and nobody has been told anything."""
        self.send_chunk([Entry(cmd, spec(**fields)) for cmd in cmds])

    def do(self, verb: str, *ids: int, **flags: Any) -> Acted:
        """`act` and pump; the answer, or the refusal raised."""
        return self.answer(self.act(verb, *ids, **flags))

    def answer(self, request: int) -> Any:
        self.pump()
        body = self.replies[request]
        if isinstance(body, RotaError):
            raise body
        return body

    def running(self) -> dict[int, tuple[ModelRunner, int]]:
        """job → runner and seat, of those that execute."""
        return {
            busy.grant.lease[0]: (model, seat)
            for model in self.runners.values()
            for seat, busy in model.busy.items()
        }

    def end(self, job: int, outcome: Outcome | None = None, *, exit_code: int = 0) -> None:
        """The command of this job ends; everything is told and committed."""
        model, seat = self.running()[job]
        started_at = model.busy[seat].started_at
        model.end(
            seat, outcome or Outcome(exit_code=exit_code, started_at=started_at, ended_at=self.wall), self.wall
        )
        self.pump()

    def state(self, job: int) -> State:
        """In memory, or, once it has left, as recorded."""
        found = self.world.jobs.get(job)
        return found.state if found else State(self.world.outcome(job))

    def states(self, *jobs: int) -> list[State]:
        return [self.state(job) for job in jobs]

    def _opening(self, job: int) -> int:
        return sum(1 for event in self.store.events(job) if event.kind in ("retried", "reopened", "again"))

    # ------------------------------------------------------------------ healing

    def heal(self) -> None:
        """Repair every fault: the dead are settled, the living connected and heard."""
        self.pump()
        for model in list(self.runners.values()):
            if model.dead:
                if not model.settled:
                    self.settle(model)
            elif not model.connected:
                self.join(model)
            self.pump()
        served = {model.host for model in self.runners.values() if not model.dead}
        for host in self.capacity.keys() - served:
            self.join(self.start_runner(host))
        self.pump()

    def run_out(self) -> None:
        """Let time pass and everything that runs succeed, until nothing does any more."""
        for _round in range(1000):
            for job in sorted(running_noops(self.world)):
                self.act("kill", job)  # nothing else ends one that has no walltime
            self.pump()
            running = list(self.running())
            # A kill makes room, and what begins there nowhere is not among those that run on hosts.
            if not running and not running_noops(self.world) and not self._something_will_happen():
                return
            for job in running:
                if job in self.running():
                    self.end(job)
            for model in self.runners.values():
                if model.connected:
                    model.report()
            self.pump()
            self.advance(31 * 60.0)
            for model in self.runners.values():
                if model.connected:
                    model.report()
            self.pump()
        raise AssertionError("it never runs out")

    def _something_will_happen(self) -> bool:
        """Is a delay running, or something planned for later?"""
        states = {job.state for job in self.world.jobs.values()}
        return State.DELAYED in states or (State.READY in states and self.engine.next_due() is not None)

    def unfinished(self) -> list[Job]:
        """Jobs that could go on and do not."""
        return [
            job
            for job in self.world.jobs.values()
            if job.state in LEASED or job.state in (State.READY, State.DELAYED, State.DEPENDENT)
        ]
