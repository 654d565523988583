"""A day on a bad network, without waiting for it: one seed is one run of 26 simulated hours.

Connections break and come back after seconds or hours, fall silent in one direction, and lose, delay
or repeat what was under way; the manager crashes and stays away; runners die and are followed by others.
What a connection cannot do is reorder: only a new one makes an old report arrive twice.
"""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush
from itertools import count
from random import Random

from rota.core import events
from rota.core.engine import Engine
from rota.core.engine_settings import EngineSettings
from rota.core.jobs.outcome import Outcome
from rota.core.machines.runners import ORPHAN_MARGIN_S
from rota.core.states import TERMINAL, State
from rota.core.turn import Batch
from rota.plan.size import Size
from tests.core.machine import GIB, LOST_AFTER_S, Entry, Machine, spec
from tests.core.runners import ModelRunner

HOUR = 3600.0
DAY_S = 26 * HOUR
TOUCH_S = 15.0

_SIZES = [Size(), Size(), Size(cpus=200, mem=GIB), Size(cpus=400), Size(mem=5 * GIB), Size(cpus=0)]


class Link:
    """What happens to the messages between one runner and the manager."""

    def __init__(self) -> None:
        self.speaks = True  #: what the runner says arrives
        self.hears = True  #: what the manager says arrives
        self.broken_until = 0.0
        self.away_since: float | None = None  #: the runner knows that it has no connection


class DayMachine(Machine):
    """Counts terminal records, and gives lost jobs up after a time of its own."""

    def __init__(self, *, seed: int, orphan_after_s: float) -> None:
        self.orphan_after_s = orphan_after_s
        self.settled: Counter[int] = Counter()
        self.ends: dict[tuple[int, int], tuple[str, str | None]] = {}  #: attempt → verdict and reason on disk
        super().__init__(hosts=2, seed=seed)

    def _boot(self) -> None:
        super()._boot()
        self.world.settings = EngineSettings(lost_after_s=LOST_AFTER_S, orphan_after_s=self.orphan_after_s)
        self.engine = Engine(self.world)

    def _record(self, batch: Batch) -> None:
        super()._record(batch)
        for row in batch.changes.ends:
            self.ends[row.job, row.number] = (row.outcome, row.reason_code)
        for written in batch.changes.job_states.values():
            if written.state in TERMINAL:
                self.settled[written.job] += 1
                assert self.settled[written.job] == 1, f"job {written.job} has two terminal records"


class Day:
    """Everything that happens, in the order of the simulated clock."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        # In most runs nobody is given up; in some, all who are away for a few hours are.
        self.orphan_after_s = self.random.choice([7 * 86400.0, 7 * 86400.0, 2 * HOUR])
        self.m = DayMachine(seed=seed, orphan_after_s=self.orphan_after_s)
        self.begun = self.m.mono
        self.healed = False
        self.manager_up = True
        self.links: dict[str, Link] = {}
        self.lives: dict[tuple[int, int], tuple[float, str]] = {}  #: attempt → when and how it ends
        self.was_lost: set[int] = set()
        self.revived: set[int] = set()
        self.seen: Counter[str] = Counter()  #: which faults there were
        self._agenda: list[tuple[float, int, str, str]] = []
        self._order = count()
        self._due: float | None = None  #: of the delay that will be over next
        for host in self.m.capacity:
            self._welcome(self.m.start_runner(host))
        self._at(0.0, "add")
        for what, every in (("add", 1.5 * HOUR), ("crash", 5 * HOUR), ("kill", 6 * HOUR), ("confirm", 3 * HOUR)):
            self._at(self._about(every), what)
        for host in self.m.capacity:
            self._at(self._about(HOUR / 4), "flap", host)
            self._at(self._about(12 * HOUR), "die", host)

    # ------------------------------------------------------------------ the clock

    def run(self) -> None:
        """The day, then the healing; at the end everything has ended, once."""
        while self._agenda and self._agenda[0][0] <= self.begun + DAY_S:
            self._next()
        self._heal()
        for _step in range(20_000):
            if not self._agenda:
                break
            self._next()
        self._judge()

    def _next(self) -> None:
        at, _order, what, about = heappop(self._agenda)
        seconds = max(0.0, at - self.m.mono)
        self.m.mono += seconds
        self.m.wall += seconds
        self._time_has_passed()
        getattr(self, f"_{what}")(about)
        self._flow()
        self._check_countdown()

    def _time_has_passed(self) -> None:
        """Whoever can be heard has touched all the while; only then is it asked who was silent."""
        self._orphans_end()
        if not self.manager_up:
            return
        for model in self._living():
            if model.connected and self.links[model.id].speaks:
                model.report()
                self.m.hear(model)
        self.m.happened(events.TimerFired())

    def _at(self, delay: float, what: str, about: str = "") -> None:
        heappush(self._agenda, (self.m.mono + delay, next(self._order), what, about))

    def _about(self, mean: float) -> float:
        return self.random.expovariate(1 / mean)

    def _tick(self, _about: str) -> None:
        """Nothing but time."""

    # ------------------------------------------------------------------ jobs

    def _add(self, _about: str) -> None:
        for _each in range(self.random.randint(1, 6)):
            its = spec(
                size=self.random.choice(_SIZES), retries=self.random.choice([0, 0, 1, 3]), backoff_s=30.0,
                priority=self.random.choice([0, 0, 9]),
            )  # fmt: skip
            if self.manager_up:
                self.m.send_chunk([Entry("work", its)], fresh=True)
        if not self.healed:
            self._at(self._about(1.5 * HOUR), "add")

    def _life(self, job: int, attempt: int) -> None:
        """Decide once how long an attempt takes and how it ends: seconds to 20 hours."""
        seconds = self.random.choice([2.0, 50.0, 600.0, HOUR, 5 * HOUR, 20 * HOUR]) * self.random.uniform(0.5, 1.0)
        how = self.random.choice(["ok", "ok", "ok", "exit", "signal"])
        self.lives[job, attempt] = (self.m.mono + seconds, how)
        self._at(seconds, "job_ends", f"{job} {attempt}")

    def _job_ends(self, about: str) -> None:
        job, attempt = map(int, about.split())
        for model in self._living():
            for seat, busy in list(model.busy.items()):
                if busy.grant.lease[:2] == (job, attempt):
                    times = {"started_at": busy.started_at, "ended_at": self.m.wall}
                    how = {"ok": {"exit_code": 0}, "exit": {"exit_code": 3}, "signal": {"signal": 9}}
                    model.end(seat, Outcome(**how[self.lives[job, attempt][1]], **times), self.m.wall)

    def _kill(self, _about: str) -> None:
        live = [job.id for job in self.m.world.jobs.values() if job.state not in TERMINAL]
        if self.manager_up and live:
            self.m.act("kill", self.random.choice(live))
        if not self.healed:
            self._at(self._about(6 * HOUR), "kill")

    def _confirm(self, _about: str) -> None:
        """Somebody looked: these lost jobs are dead indeed."""
        if self.manager_up:
            lost = [job for job in self.m.world.jobs.values() if job.state is State.LOST and job.lease]
            dead = [job.id for job in lost if self._is_dead(job.id, job.lease.runner)]
            self.m.act("confirm-dead", *dead)
        if not self.healed:
            self._at(self._about(3 * HOUR), "confirm")

    def _is_dead(self, job: int, runner: str) -> bool:
        return self.m.runners[runner].dead and job not in self.m.witness.running

    # ------------------------------------------------------------------ the network

    def _living(self) -> list[ModelRunner]:
        return [model for model in self.m.runners.values() if not model.dead]

    def _runner_at(self, host: str) -> ModelRunner | None:
        return next((model for model in self._living() if model.host == host), None)

    def _flap(self, host: str) -> None:
        """Something becomes of the connection of this host, for seconds or for hours."""
        if self.healed:
            return
        span = self.random.choice([1.0, 20.0, 58.0, 70.0, 300.0, HOUR, 4 * HOUR]) * self.random.uniform(0.5, 1.0)
        model = self._runner_at(host)
        if model is not None and model.connected:
            link = self.links[model.id]
            fault = self.random.choice(["break", "break", "mute", "deaf", "both"])
            self.seen[fault] += 1
            if fault == "break":
                self._break(model, span)
            else:
                # A connection that carries nothing is noticed by the runner in less than the margin.
                span = min(span, ORPHAN_MARGIN_S * 0.9)
                link.speaks = fault == "deaf"
                link.hears = fault == "mute"
                self._at(span, "unmute", model.id)
        self._at(LOST_AFTER_S + 1, "tick")
        self._at(span + self._about(HOUR / 4), "flap", host)

    def _break(self, model: ModelRunner, span: float) -> None:
        """What was under way is lost, or some of what the runner said arrives before the end."""
        link = self.links[model.id]
        if self.manager_up and link.speaks and self.random.random() < 0.5:
            model.report()
            self.m.hear(model, self.random.randint(0, 2))
        link.speaks = link.hears = True
        link.broken_until = self.m.mono + span
        link.away_since = self.m.mono
        model.disconnect()
        # The manager may not notice before the next connection comes.
        if self.manager_up and self.random.random() < 0.7:
            self.m.happened(events.RunnerParted(runner=model.id))
        self._at(span, "connect", model.id)
        self._at(self.orphan_after_s + 1, "tick")
        self._at(self.orphan_after_s + ORPHAN_MARGIN_S + 2, "tick")

    def _unmute(self, runner: str) -> None:
        """Either what was held up arrives late, or the connection turns out to be dead."""
        model, link = self.m.runners[runner], self.links[runner]
        if model.dead or not model.connected or (link.speaks and link.hears):
            return
        if self.random.random() < 0.5:
            self._break(model, self.random.choice([0.1, 30.0, HOUR]))
        else:
            link.speaks = link.hears = True

    def _connect(self, runner: str) -> None:
        model, link = self.m.runners[runner], self.links[runner]
        if model.dead or model.connected:
            return
        if not self.manager_up or self.m.mono < link.broken_until:
            self._at(max(1.0, link.broken_until - self.m.mono), "connect", runner)
            return
        if any(dead.host == model.host and not dead.settled for dead in self.m.runners.values() if dead.dead):
            self._settle_dead(model.host)
        link.away_since = None
        self.m.join(model)
        if self.random.random() < 0.1:  # the answer does not come, and it tries once more
            model.disconnect()
            self.m.join(model)

    def _welcome(self, model: ModelRunner) -> None:
        self.links[model.id] = Link()
        self._connect(model.id)

    def _orphans_end(self) -> None:
        """Runners that have been away for too long end their jobs and keep the records. Of one that died
        meanwhile nothing is left by then either."""
        for model in self.m.runners.values():
            away = self.links[model.id].away_since
            if away is not None and not model.settled and self.m.mono - away >= self.orphan_after_s:
                self.seen["orphans"] += bool(model.busy)
                model.waiting.clear()
                for seat in list(model.busy):
                    model.end(seat, Outcome(reason="lost", message="orphaned", ended_at=self.m.wall), self.m.wall)

    # ------------------------------------------------------------------ deaths

    def _crash(self, _about: str) -> None:
        """kill -9 of the manager; somebody starts it again at once, or hours later."""
        if self.healed:
            return
        if self.manager_up:
            self.seen["crash"] += 1
            if self.random.random() < 0.5:
                self.m.commit(perform=False)
            self.manager_up = False
            for model in self._living():
                if model.connected:
                    model.disconnect()
                    link = self.links[model.id]
                    link.speaks = link.hears = True
                    link.away_since = self.m.mono
                self._at(self.random.uniform(0.1, 30.0), "connect", model.id)
            self._at(self.random.choice([0.0, 5.0, 120.0, 2.5 * HOUR]), "manager_starts")
        self._at(self._about(5 * HOUR), "crash")

    def _manager_starts(self, _about: str) -> None:
        if self.manager_up:
            return
        self.m.crash()
        self.manager_up = True
        self._at(LOST_AFTER_S + 1, "tick")

    def _die(self, host: str) -> None:
        """The runner of a host is killed; another comes after a while and makes up for it."""
        if self.healed:
            return
        model = self._runner_at(host)
        if model is not None:
            self.seen["death"] += 1
            link = self.links[model.id]
            link.away_since = self.m.mono if link.away_since is None else link.away_since
            model.die()
            if self.manager_up and self.random.random() < 0.7:
                self.m.happened(events.RunnerParted(runner=model.id))
            self._at(LOST_AFTER_S + 1, "tick")
            self._at(self.orphan_after_s + 1, "tick")
            self._at(self.random.choice([1.0, 100.0, HOUR]), "follow", host)
        self._at(self._about(12 * HOUR), "die", host)

    def _follow(self, host: str) -> None:
        if not self.manager_up:
            self._at(10.0, "follow", host)
        elif self._runner_at(host) is None:
            self._settle_dead(host)
            self._welcome(self.m.start_runner(host))

    def _settle_dead(self, host: str) -> None:
        for model in list(self.m.runners.values()):
            if model.dead and not model.settled and model.host == host:
                self.m.settle(model, whole=self.healed or self.random.random() < 0.8)

    # ------------------------------------------------------------------ messages

    def _flow(self) -> None:
        """Whatever the connections let through now; some of it waits until the next thing happens."""
        for _round in range(6):
            moved = False
            if self.manager_up:
                moved |= self.m.commit()
            for model in self._living():
                link = self.links[model.id]
                if model.connected and link.hears and model.incoming:
                    model.deliver(self._some(len(model.incoming)))
                    moved = True
                if model.connected and model.draft and self.random.random() < 0.9:
                    model.report()
                if self.manager_up and model.connected and link.speaks and model.outgoing:
                    self.m.hear(model, self._some(len(model.outgoing)))
                    moved = True
                for busy in model.busy.values():
                    if busy.grant.lease[:2] not in self.lives:
                        self._life(*busy.grant.lease[:2])
            if not moved:
                break
        if moved or any(model.connected and model.draft for model in self._living()):
            self._at(self.random.uniform(0.01, 5.0), "tick")
        due = self.m.engine.next_due() if self.manager_up else None
        if due is not None and due != self._due:
            self._due = due
            self._at(max(0.0, due - self.m.wall) + 0.001, "tick")

    def _some(self, many: int) -> int:
        return many if self.healed or self.random.random() < 0.8 else self.random.randint(0, many)

    # ------------------------------------------------------------------ what holds

    def _check_countdown(self) -> None:
        """Lost are the jobs of those who have been silent for a minute, and of nobody else."""
        if not self.manager_up:
            return
        for runner in self.m.world.runners.values():
            lost = {id for id in runner.leases if self.m.world.jobs[id].state is State.LOST}
            silent = self.m.mono - runner.heard_at > LOST_AFTER_S
            assert not lost or silent, f"{runner.id} was heard a moment ago, but {lost} are lost"
            self.revived |= (self.was_lost & runner.leases) - lost
            self.was_lost |= lost

    # ------------------------------------------------------------------ the end

    def _heal(self) -> None:
        """From now on nothing fails any more."""
        self.healed = True
        self._manager_starts("")
        for model in self._living():
            link = self.links[model.id]
            link.speaks = link.hears = True
            link.broken_until = 0.0
            self._at(0.0, "connect", model.id)
        for host in self.m.capacity:
            self._at(0.0, "follow", host)

    def _judge(self) -> None:
        m = self.m
        m.pump()
        assert not m.unfinished(), f"never ended: {[(job.id, job.state.label) for job in m.unfinished()]}"
        assert not m.witness.running, f"still executing: {m.witness.running}"
        for job in m.acknowledged:
            assert m.settled[job] == 1, f"job {job} has {m.settled[job]} terminal records"
        for lease in m.witness.executed:
            assert lease in m.ends, f"attempt {lease} executed and nobody wrote how it ended"
        for lease in m.witness.succeeded:
            verdict, reason = m.ends[lease]
            # Only what was given up, or was in a damaged journal, is not known to have succeeded.
            known = verdict == "complete" or reason in ("lost", "kill_requested")
            assert known, f"attempt {lease} succeeded and is recorded as {verdict} ({reason})"
        for model in self._living():
            assert not model.unacknowledged, (
                f"{len(model.unacknowledged)} reports of {model.id} were never answered"
            )
            assert not model.waiting, f"{model.id} never began {[grant.lease for grant in model.waiting]}"


def live_through(seed: int) -> None:
    """One day; what goes wrong says by which seed it can be had again."""
    try:
        Day(seed).run()
    except Exception as error:
        error.add_note(f"tests.core.flapping.Day({seed}).run() repeats this")
        raise
