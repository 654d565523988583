"""A bug in the decision of every kind of event, at lines before, between and after its changes.

Nothing half done is ever committed: the invariants hold after each recovery, and what was on disk is what is
recovered. Every other request succeeds, and so does the same one when it is made again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from rota.core import events
from rota.core.attempts.leases import JobProgress, LeaseRef
from rota.core.features import BUILT_IN
from rota.core.hooks import expiry
from rota.core.jobs.outcome import Outcome
from rota.core.machines import machine_events as machines
from rota.core.machines import provision_records as provision
from rota.core.pipelines import session_records as pipelines
from rota.core.pipelines.definition import Definition, Element, Stage
from rota.core.pipelines.session import Sessions
from rota.core.pools import events as pools
from rota.core.pools.records import Blank, RunnerState, Seen, Wanted
from rota.core.pools.state import PoolRules, Pools
from rota.core.rows import SpecRow
from rota.core.states import State
from rota.errors import NotDone
from rota.plan.need import LimitUse, Need
from rota.plan.policy.limits import Limit
from rota.plan.size import Capacity, Size
from tests.core.bugs.faulty import FaultyMachine, Lines
from tests.core.machine import GIB, Entry, spec
from tests.dose import FACTOR

#: Bugs for each kind of event, spread evenly over the lines that decide it; in the usual dose there are two, one
#: between its changes, elsewhere for each kind, and one after them.
_POINTS = 3 * min(FACTOR, 10)
_NEVER = 1 << 60
_NEED = Need(Size(cpus=100))
_BLANKS = pools.BlanksMade(pool="far", need=_NEED, blanks=[Blank("x-1", "t1"), Blank("x-2", "t2")])

#: A machine that is provisioned no more.
_MACHINE: Any = {"job": 1, "attempt": 1, "host": "h1", "token": 5}


class Scene(FaultyMachine):
    """A deployment in which everything can happen."""

    def __init__(self) -> None:
        self.built = False
        super().__init__(hosts=2, cpus=300)
        self.one, self.two = (self.start_runner(host) for host in self.capacity)
        self.join(self.one)
        self.join(self.two)
        self.pump()
        core = Size(cpus=100)
        self.runs, self.runs_too, self.ends = self.add("a", "b", "c", size=core, retries=1).added
        (done,) = self.add("i", size=core).added
        self.end(done)
        (self.fails,) = self.add("d", size=core).added
        self.end(self.fails, exit_code=1)
        (self.waits,) = self.add("e", after=((self.runs, 1, False),)).added  # type: ignore[arg-type]
        (self.held,) = self.add("f", after=((self.runs, 1, False),)).added  # type: ignore[arg-type]
        self.do("hold", self.held)
        self.add(*[f"g{n}" for n in range(6)], size=core)
        self.add_quietly("h", size=core)  # in the commit that is in flight
        self.built = True
        self.check()

    def check(self) -> None:
        """What only sets the scene is checked once."""
        if self.built:
            super().check()

    def lease(self, job: int) -> LeaseRef:
        found = self.world.jobs[job]
        assert found.lease is not None
        return LeaseRef(job, found.attempt, found.lease.token)

    def by(self, make: Callable[[events.Asker], events.Event]) -> Callable[[], int]:
        """A request that is one event."""

        def ask() -> int:
            asker = self.asker()
            self.happened(make(asker))
            return asker.n

        return ask

    def modify(self) -> int:
        asker, job = self.asker(), self.world.jobs[self.waits]
        new, number = msgspec.structs.replace(job.spec, priority=9), 1000
        self.happened(
            events.LibraryGrew(specs=[SpecRow(number, msgspec.json.encode(new).decode())], envs=[]),
            events.JobsModified(
                by=asker,
                jobs=[job.id],
                loaded={},
                specs={job.spec_id: (number, new)},
                fields=["priority"],
            ),
        )
        self._spec_ids[new] = number
        return asker.n

    def report_an_end(self) -> None:
        model, seat = self.running()[self.ends]
        model.end(seat, Outcome(exit_code=0, started_at=self.wall, ended_at=self.wall), self.wall)
        model.report()
        self.hear(model)


def _dead(m: Scene) -> Scene:
    """With a runner that died, and everything committed."""
    m.pump()
    m.die(m.two)
    m.pump()
    return m


def _lost(m: Scene) -> Scene:
    _dead(m)
    for busy in m.two.busy.values():  # its machine is off
        m.witness.end(busy.grant.lease[0], busy.grant.lease[1], ok=False)
    m.two.busy.clear()
    m.one.report()
    m.hear(m.one)
    m.advance(61.0)
    m.one.report()
    m.pump()
    return m


def _pool(m: Scene, *, asked: bool = True) -> None:
    """A delegated pool that was asked for two runners, or is about to be."""
    state = m.world.use(Pools)
    state.configure({"far": PoolRules(max_runners=3)})
    state.want({"far": {_NEED: Wanted(2, 60.0)}})
    m.happened(pools.PoolSurveyed(pool="far", seen=[], known=frozenset()))
    if asked:
        m.happened(_BLANKS)
    m.pump()


_BUILD = spec(name="build", limits=(LimitUse("shut"),))
_LOOK = spec(name="conditions", size=Size(cpus=0))


def _session(by: events.Asker, *, condition: str = "") -> events.Event:
    """A pipeline of two elements. Nothing of it begins, since its limit has no unit."""
    return pipelines.SessionStarted(
        by=by,
        file="/p.yaml",
        cwd="/",
        digest="d",
        definition=Definition(
            stages=(Stage(name="build", run="make {name}", skip_if=condition),),
            elements=(Element("a"), Element("b", (0,))),
        ),
        works=(pipelines.Work(901),),
        conditions=902,
        specs={901: _BUILD, 902: _LOOK},
        limits=[Limit("shut", 0)],
    )


def _with_session(m: Scene) -> None:
    rows = [SpecRow(number, msgspec.json.encode(each).decode()) for number, each in ((901, _BUILD), (902, _LOOK))]
    m.happened(events.LibraryGrew(specs=rows, envs=[]))
    m.pump()


def _number(m: Scene) -> int:
    return max(m.world.use(Sessions).all)


def _progress(m: Scene) -> JobProgress:
    found = m.lease(m.runs)
    return JobProgress(found.job, found.attempt, found.token, 1.0, 2.0, "half")


def _looking(m: Scene) -> int:
    """The job that looks at conditions; 0: a restart has forgotten it, and asks again."""
    return max(m.world.use(Sessions).all[_number(m)].looking, default=0)


def _looked(m: Scene) -> None:
    m.pump()
    while m.state(_looking(m)) is not State.RUNNING:
        m.end(min(m.running()))
    m.end(_looking(m))
    m.pump()


def _act(verb: str, name: str, **flags: Any) -> Callable[[Scene], Callable[[], int]]:
    return lambda m: lambda: m.act(verb, getattr(m, name), **flags)


def _reserved(by: events.Asker) -> events.Event:
    return machines.MachineReserved(by=by, operator=True, host="h1", seconds=60.0, when_free=True)


#: kind → (what comes before, what happens). A request returns its number.
CASES: dict[type[events.Event], tuple[Callable[[Scene], Any], Callable[[Scene], Callable[[], Any]]]] = {
    events.ChunkArrived: (
        lambda m: None,
        lambda m: lambda: m.send_chunk([Entry("new", spec()), Entry("next", spec(), ((0, 1, True),))]),  # type: ignore[arg-type]
    ),
    events.LibraryGrew: (lambda m: None, lambda m: lambda: m.send_chunk([Entry("new", spec(user="bob"))])),
    events.UploadDropped: (
        lambda m: m.send_chunk([Entry("new", spec())], submission="u", last=False),
        lambda m: lambda: m.drop("u"),
    ),
    events.JobsKilled: (lambda m: None, _act("kill", "runs")),
    events.JobsHeld: (lambda m: None, _act("hold", "waits")),
    events.JobsReleased: (lambda m: None, _act("release", "held")),
    events.JobsRetried: (lambda m: None, _act("retry", "fails")),
    events.JobsRemoved: (lambda m: None, _act("remove", "fails")),
    events.JobsSuspended: (lambda m: None, _act("suspend", "runs")),
    events.JobsResumed: (lambda m: (m.do("suspend", m.runs), m.pump()), _act("resume", "runs")),
    events.JobsSignalled: (
        lambda m: None,
        lambda m: m.by(lambda by: events.JobsSignalled(by=by, jobs=[m.runs], signal="USR1")),
    ),
    events.WalltimeAsked: (lambda m: None, _act("walltime", "runs", seconds=600.0)),
    events.DeathConfirmed: (
        _lost,
        lambda m: m.by(
            lambda by: events.DeathConfirmed(
                by=by, jobs=[job.id for job in m.world.jobs.values() if job.state is State.LOST]
            )
        ),
    ),
    events.HostAppeared: (
        lambda m: None,
        lambda m: (
            lambda: m.happened(events.HostAppeared(host="h1", capacity=Capacity(cpus=300, mem=8 * GIB, disk=GIB)))
        ),
    ),
    events.RunnerJoined: (lambda m: m.disconnect(m.one), lambda m: lambda: m.join(m.one)),
    events.RunnerParted: (lambda m: None, lambda m: lambda: m.disconnect(m.one)),
    events.RunnerReported: (lambda m: m.pump(), lambda m: m.report_an_end),
    events.RunnerIdled: (
        lambda m: None,
        lambda m: lambda: m.happened(events.RunnerIdled(runner=m.one.id)),
    ),
    events.JobsProgressed: (
        lambda m: (_with_session(m), m.ask(m.by(_session)), m.pump()),
        lambda m: lambda: m.happened(events.JobsProgressed(runner=m.one.id, told=[_progress(m)])),
    ),
    events.RunnerSettled: (_dead, lambda m: lambda: m.settle(m.two)),
    events.EntrySetAside: (
        lambda m: m.pump(),
        lambda m: (
            lambda: m.happened(
                events.EntrySetAside(runner=m.one.id, field="started", lease=LeaseRef(m.runs, 1, 1), said="{}")
            )
        ),
    ),
    events.MemberArrived: (
        lambda m: None,
        lambda m: m.by(lambda by: events.MemberArrived(by=by, job=m.runs, point="p", wait="w")),
    ),
    events.MemberLeft: (
        lambda m: None,
        lambda m: m.by(lambda by: events.MemberLeft(by=by, job=m.runs, point="p", wait="w")),
    ),
    events.PowerCommandEnded: (
        lambda m: None,
        lambda m: lambda: m.happened(events.PowerCommandEnded(host="h1", wake=False, error="no")),
    ),
    events.HostHealed: (
        lambda m: None,
        lambda m: lambda: m.happened(events.HostHealed(host="h1", why="well")),
    ),
    events.HostFenced: (_lost, lambda m: lambda: m.happened(events.HostFenced(host="h2", why="off"))),
    events.ServerScriptEnded: (
        lambda m: None,
        lambda m: lambda: m.happened(events.ServerScriptEnded(hook="prologue", job=m.runs, attempt=1, token=0)),
    ),
    provision.ProvisionBegan: (
        lambda m: None,
        lambda m: lambda: m.happened(provision.ProvisionBegan(**_MACHINE, ticket="t")),
    ),
    provision.ProvisionEnded: (
        lambda m: None,
        lambda m: lambda: m.happened(provision.ProvisionEnded(**_MACHINE, wrong="no")),
    ),
    expiry.ExpiryHookAnswered: (
        lambda m: None,
        lambda m: lambda: m.happened(expiry.ExpiryHookAnswered(job=1, attempt=1, token=5, more_s=60.0)),
    ),
    provision.TicketMade: (
        lambda m: None,
        lambda m: lambda: m.happened(provision.TicketMade(**_MACHINE, ticket="t")),
    ),
    provision.NodeReady: (lambda m: None, lambda m: lambda: m.happened(provision.NodeReady(host="h1"))),
    events.ManagerPaused: (lambda m: None, lambda m: lambda: m.happened(events.ManagerPaused())),
    events.ManagerDrained: (lambda m: None, lambda m: lambda: m.happened(events.ManagerDrained())),
    events.ManagerResumed: (
        lambda m: (m.happened(events.ManagerPaused()), m.pump()),
        lambda m: lambda: m.happened(events.ManagerResumed()),
    ),
    events.LimitsDeclared: (
        lambda m: None,
        lambda m: m.by(lambda by: events.LimitsDeclared(by=by, limits=[Limit("net", 3)])),
    ),
    machines.MachineSet: (
        lambda m: None,
        lambda m: m.by(lambda by: machines.MachineSet(by=by, operator=True, hosts=["h1"], condition="broken")),
    ),
    machines.MachineReserved: (lambda m: None, lambda m: m.by(_reserved)),
    machines.MachineReturned: (
        lambda m: m.ask(m.by(_reserved)),
        lambda m: m.by(lambda by: machines.MachineReturned(by=by, operator=True, host="h1")),
    ),
    events.SiteChanged: (
        lambda m: None,
        lambda m: m.by(lambda by: events.SiteChanged(by=by, changes=[("queue", "night", {"priority": 1})])),
    ),
    events.JobsModified: (lambda m: None, lambda m: m.modify),
    events.LearningForgotten: (
        lambda m: None,
        lambda m: m.by(lambda by: events.LearningForgotten(by=by, names=[])),
    ),
    events.OutputOutdated: (
        lambda m: None,
        lambda m: lambda: m.happened(events.OutputOutdated(segments=["r1-1"])),
    ),
    pools.BlanksMade: (lambda m: _pool(m, asked=False), lambda m: lambda: m.happened(_BLANKS)),
    pools.RunnersSubmitted: (
        lambda m: _pool(m),
        lambda m: lambda: m.happened(pools.RunnersSubmitted(pool="far", ids={"x-1": "e1", "x-3": "e3"})),
    ),
    pools.SubmissionFailed: (
        lambda m: _pool(m),
        lambda m: (
            lambda: m.happened(
                pools.SubmissionFailed(pool="far", need=_NEED, names=["x-1"], error="no", refused=True)
            )
        ),
    ),
    pools.PoolSurveyed: (
        lambda m: _pool(m),
        lambda m: (
            lambda: m.happened(
                pools.PoolSurveyed(
                    pool="far",
                    seen=[Seen("x-1", "e1", RunnerState.RUNNING), Seen("x-9", "e9", RunnerState.PENDING)],
                    known=frozenset({"x-1", "x-2"}),
                )
            )
        ),
    ),
    pools.SurveyFailed: (
        lambda m: _pool(m),
        lambda m: lambda: m.happened(pools.SurveyFailed(pool="far", error="no")),
    ),
    pools.WithdrawalEnded: (
        lambda m: _pool(m),
        lambda m: lambda: m.happened(pools.WithdrawalEnded(pool="far", error="no")),
    ),
    pipelines.SessionStarted: (_with_session, lambda m: m.by(_session)),
    pipelines.SessionActed: (
        lambda m: (_with_session(m), m.ask(m.by(_session)), m.pump()),
        lambda m: m.by(lambda by: pipelines.SessionActed(by=by, session=_number(m), verb="terminate")),
    ),
    pipelines.SessionAttended: (
        lambda m: (_with_session(m), m.ask(m.by(_session)), m.pump()),
        lambda m: lambda: m.happened(pipelines.SessionAttended(session=_number(m), clients=1)),
    ),
    pipelines.ConditionsAnswered: (
        lambda m: (_with_session(m), m.ask(m.by(partial(_session, condition="test -e {name}"))), _looked(m)),
        lambda m: (
            lambda: m.happened(pipelines.ConditionsAnswered(session=_number(m), job=_looking(m), text="0 0 1"))
        ),
    ),
    pipelines.SliceCommitted: (
        lambda m: (_with_session(m), m.ask(m.by(_session)), m.pump()),
        lambda m: lambda: m.happened(pipelines.SliceCommitted(session=_number(m))),
    ),
    events.ClockMoved: (lambda m: m.pump(), lambda m: lambda: m.happened(events.ClockMoved(by=30.0))),
    events.TimerFired: (lambda m: None, lambda m: lambda: m.advance(31.0)),
}


def test_every_kind_of_event_is_tried() -> None:
    assert CASES.keys() == BUILT_IN.handlers.keys() | {events.TimerFired}


def _run(kind: type[events.Event], fatal: int) -> tuple[Scene, Lines]:
    """A scene in which the decision of this event meets a bug at a line, and everybody asks again."""
    m = Scene()
    before, happens = CASES[kind]
    before(m)
    m.ask(lambda: m.send_chunk([Entry("beside", spec(name="x"))]))  # a request in the batch that is dropped
    m.lines = lines = Lines(fatal)
    act = happens(m)
    if kind in _REQUESTS:
        m.ask(act)
    else:
        try:
            act()
        except NotDone:
            m.pump()
            if kind in _REPEATED:
                act()
    m.pump()
    return m, lines


_REQUESTS = {kind for kind in CASES if "by" in kind.__struct_fields__} - {events.ClockMoved, provision.NodeReady}
_REQUESTS |= {events.LibraryGrew}
#: What nobody asks for happens again by itself, but for these it already has, or cannot happen again.
_REPEATED = {kind for kind in CASES if kind not in _REQUESTS} - {
    *(events.RunnerJoined, events.RunnerReported, events.RunnerParted, events.UploadDropped, events.ClockMoved),
}


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
def test_a_bug_leaves_nothing_half_done(kind: type[events.Event]) -> None:
    whole, lines = _run(kind, _NEVER)
    total, met = lines.count, 0
    for fatal in _points(kind, total):
        m, lines = _run(kind, fatal)
        if not lines.met:
            continue  # what is cached takes fewer lines
        met += 1
        assert len(m.met) == 1
        m.happened(events.ManagerResumed())
        m.heal()
        m.run_out()
        assert all(m.state(id) is not State.LOST for id in m.world.jobs), fatal
        failed = {n: each for n, each in m.replies.items() if isinstance(each, Exception)}
        assert failed == {n: each for n, each in failed.items() if isinstance(whole.replies.get(n), Exception)}
        (beside,) = [row for row in m.store.jobs(list(range(1, m.world.next_job))) if row.cmd == "beside"]
        assert beside.state == State.COMPLETE
    assert met


def _points(kind: type[events.Event], total: int) -> list[int]:
    """The lines at which a bug is met."""
    if FACTOR == 1:
        return [1 + total * (1 + list(CASES).index(kind) % 5) // 7, total - total // 50]
    return sorted({1 + n * (total - 1) // _POINTS for n in range(_POINTS + 1)})
