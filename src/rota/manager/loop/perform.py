"""Carries out effects, once their batch is on disk.

Effects for a peer that has disconnected are dropped: a runner or client gets the state anew when it comes back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from time import monotonic

import msgspec
from msgspec.structs import replace

from rota.core import effects as e
from rota.core.attempts.leases import LeaseRef
from rota.core.jobs.command import length
from rota.core.jobs.job import Job
from rota.core.jobs.report_groups import first_of
from rota.core.machines.provision_records import SendProvision
from rota.core.machines.provisioned_machines import is_provisioning
from rota.core.states import State
from rota.core.submit.spec_library import Library
from rota.core.world import World
from rota.errors import Bug, Denied, RotaError
from rota.manager.feature import Perform
from rota.manager.metrics.counters import Counters
from rota.manager.metrics.rates import Rates
from rota.manager.output.pruning import Pruner
from rota.manager.peers.channels import ChannelRouter
from rota.manager.peers.peer import Peer
from rota.manager.peers.runners import Runners
from rota.manager.watch.watches import Watches
from rota.plan.placement.given import Given
from rota.settings import Settings
from rota.store.base import Store
from rota.wire import codec
from rota.wire import messages as m

log = logging.getLogger("rota.manager")

#: Effects that send jobs to a runner, which must know their environments.
_SENDS_JOBS = (e.SendWork, e.SendParts, SendProvision)
_FOR_RUNNERS = frozenset({e.SendRules, *_SENDS_JOBS})
#: Approximate size of one message, in characters of commands and environments.
_PIECE = 4 << 20


class Performer:
    """Sends and starts what was decided."""

    def __init__(
        self,
        world: World,
        store: Store,
        library: Library,
        settings: Settings,
        *,
        peers: Mapping[int, Peer],
        runners: Runners,
        watches: Watches,
        channels: ChannelRouter,
        features: Mapping[type[e.Effect], Perform],
        pruner: Pruner,
        figures: Counters,
        rates: Rates,
        failed: Callable[[str, Exception], None],
        start_anew: Callable[[str], None],
    ) -> None:
        self._world = world
        self._store = store
        self._library = library
        self._settings = settings
        self._peers = peers
        self._runners = runners
        self._watches = watches
        self._channels = channels
        self._features = features  #: effects of features
        self._pruner = pruner
        self._figures = figures
        self._rates = rates
        self._failed = failed  #: told of bugs
        self._start_anew = start_anew
        self._environments: dict[int, bytes] = {}  #: read for the batch that is being committed

    def to_read(self, effects: list[e.Effect]) -> Callable[[], None] | None:
        """What has to be read, in another thread than the loop's, before these effects can be performed: the
        environments that are not remembered and that a runner has not got. None: nothing, as for most."""
        missing: set[int] = set()
        joining: set[str] = set()  #: runners that are about to be admitted, and have got nothing
        for effect in effects:
            if type(effect) not in _FOR_RUNNERS:
                continue
            if isinstance(effect, e.SendRules):
                joining.add(effect.runner)
            elif isinstance(effect, _SENDS_JOBS):
                peer = None if effect.runner in joining else self._runners.peer_of(effect.runner)
                for job in effect.jobs:
                    if peer is not None and (job.spec_id in peer.specs or job.spec.env in peer.envs):
                        continue
                    if not self._library.remembers(job.spec.env):
                        missing.add(job.spec.env)
        if not missing:
            return None
        found: dict[int, bytes] = {}
        self._environments = found

        def read() -> None:
            for number in missing:
                try:
                    found[number] = self._store.env(number)
                except Exception:
                    log.exception("the environment %d cannot be read", number)  # sending the work will fail

        return read

    def _environment(self, number: int) -> bytes:
        """An environment that was read, or else must be read now, which `to_read` makes all but impossible."""
        found = self._environments.get(number)
        return self._store.env(number) if found is None else found

    def perform(self, effects: list[e.Effect]) -> None:
        """Perform effects in order. A failure of one does not keep the others from being performed."""
        for effect in effects:
            try:
                self._perform(effect)
            except Exception as error:
                log.exception("effect %s failed", type(effect).__name__)
                if isinstance(error, Bug) or not isinstance(error, RotaError):
                    self._failed(f"effect {type(effect).__name__}", error)
                    error = Bug("the answer could not be sent", hint="see 'rota manager logs'")
                if isinstance(effect, e.SendReply) and (asker := self._peers.get(effect.to.connection)):
                    asker.fail(effect.to.n, error)

    def _perform(self, effect: e.Effect) -> None:
        match effect:  # the commonest first
            case e.NotifySettled(job, state, outcome):
                self._watches.settled(job, state, outcome)
                self._figures.ended(State(state).label)
                if outcome is not None:
                    begun = outcome.started_at
                    wall_s = None if begun is None else max(0.0, outcome.ended_at - begun)
                    self._rates.ended(job.spec.group, wall_s, monotonic())
            case e.NotifyStarted(job_id, attempt, runner):
                self._watches.started(job_id, attempt, runner)
            case e.AcknowledgeReport(runner, seq):
                if peer := self._runners.peer_of(runner):
                    peer.send(m.Ack(seq))
            case e.SendWork(runner):
                if peer := self._runners.peer_of(runner):
                    for work in self._work(peer, effect):
                        peer.send(work)
            case e.SendParts(runner, jobs, leases):
                if peer := self._runners.peer_of(runner):
                    self._send_parts(peer, jobs, leases)
            case SendProvision(runner, jobs):
                if peer := self._runners.peer_of(runner):
                    self._send_provision(peer, jobs[0], effect)
            case e.CloseParts(runner, leases):
                if peer := self._runners.peer_of(runner):
                    peer.send(m.ClosePart([LeaseRef(*lease) for lease in leases]))
            case e.SendReply(to, body):
                if asker := self._peers.get(to.connection):
                    asker.send(m.Reply(to.n, codec.body(body)))
            case e.Refuse(to, error):
                if asker := self._peers.get(to.connection):
                    asker.fail(to.n, error)
            case e.NotifyReopened(job_id):
                self._watches.reopened(job_id)
            case e.SendRules(runner, forget):
                if peer := self._runners.admit(runner):
                    peer.send(self._rules(forget))
                    self._watches.rejoined(runner)
            case e.DismissRunner(runner, why):
                if peer := self._runners.peer_of(runner):
                    if why:
                        peer.refuse(Denied(why, code=m.REMOVED))
                    else:
                        peer.send(m.Leave())
            case e.KillAttempts(runner, leases):
                if peer := self._runners.peer_of(runner):
                    peer.send(m.Kill([LeaseRef(*lease) for lease in leases], effect.checkpoint))
            case e.SignalAttempts(runner, leases, signal, everything):
                if peer := self._runners.peer_of(runner):
                    peer.send(m.Signal([LeaseRef(*lease) for lease in leases], signal, everything))
            case e.RemoveSegments(segments):
                self._pruner.remove(segments)
            case e.RecallLeases(runner, leases):
                if peer := self._runners.peer_of(runner):
                    peer.send(m.Recall([LeaseRef(*lease) for lease in leases]))
            case e.EndMeeting(to, exit_code, message):
                if asker := self._peers.get(to.connection):
                    self._channels.met(asker, to.n, exit_code, message)
            case e.StartAnew(why):
                self._start_anew(why)
            case _:
                perform = self._features.get(type(effect))
                if perform is None:
                    raise Bug(f"nothing performs {type(effect).__name__}")
                perform(effect)

    def _rules(self, forget: list[tuple[int, int, int]]) -> m.Rules:
        settings = self._settings
        return m.Rules(
            touch_s=settings.touch_s,
            orphan_after_s=settings.orphan_after,
            grace_s=settings.grace,
            keep_output=settings.keep_output,
            containment=settings.containment,
            forget=[LeaseRef(*lease) for lease in forget],
            behaviour_timeout_s=settings.behaviour_timeout,
            enforce_memory=settings.enforce_memory,
            interactive_grace_s=settings.interactive_grace,
            prologue=settings.prologue or "",
            epilogue=settings.epilogue or "",
            hook_timeout_s=settings.hook_timeout,
            containment_script=settings.containment_script or "",
            suspend_hook=settings.suspend_hook or "",
            resume_hook=settings.resume_hook or "",
            walltime_warning_s=settings.walltime_warning,
            warn_signal=settings.warn_signal,
            checkpoint_grace_s=settings.checkpoint_grace,
            output_spool=settings.output_spool,
        )

    def _work(self, peer: Peer, effect: e.SendWork) -> Iterator[m.Work]:
        """Leases that are still valid, with the specifications and environments that this runner has not got yet,
        in messages that fit a frame. Seats come last: a runner gives back a seat without a lease."""
        grants: list[m.Grant] = []
        specs: list[m.RunSpec] = []
        envs: list[tuple[int, bytes]] = []
        size = 0
        for job, (id, attempt, token) in zip(effect.jobs, effect.leases, strict=True):
            lease = job.lease
            if lease is None or lease.token != token:
                continue  # it moved on before it was sent
            if job.spec_id not in peer.specs:
                size += self._tell_spec(peer, job, specs, envs)
            rank = ((255 - job.spec.priority) << 48) + job.id
            allocation = None if lease.given is None else _allocation(job, lease.given)
            if lease.gang_hosts:
                allocation = replace(allocation or m.Allocation(), gang_hosts=lease.gang_hosts)
            spec, cmd = job.spec_id, job.cmd
            grants.append(m.Grant(id, attempt, token, spec, cmd, rank, job.learned, job.element, allocation))
            size += length(job.cmd)
            if size > _PIECE:
                yield m.Work(grants, [], specs, envs)
                grants, specs, envs, size = [], [], [], 0
        seats = [m.Seat(seat.seat, seat.size) for seat in effect.seats]
        yield m.Work(grants, seats, specs, envs)

    def _tell_spec(self, peer: Peer, job: Job, specs: list[m.RunSpec], envs: list[tuple[int, bytes]]) -> int:
        """Add what this runner has not got yet. Returns the number of bytes."""
        peer.specs.add(job.spec_id)
        specs.append(_run_spec(job))
        if job.spec.env in peer.envs:
            return 0
        peer.envs.add(job.spec.env)
        blob = self._library.blob(job.spec.env, self._environment)
        envs.append((job.spec.env, blob))
        return len(blob)

    def _send_provision(self, peer: Peer, job: Job, order: SendProvision) -> None:
        """The command that makes a machine ready goes to its runner like a job, with a seat of its own."""
        if job.lease is None or not is_provisioning(job, order.attempt, order.token):
            return  # it moved on before it was sent
        specs: list[m.RunSpec] = []
        envs: list[tuple[int, bytes]] = []
        known = job.spec_id in peer.specs
        self._tell_spec(peer, job, specs, envs)
        if not known:
            peer.specs.discard(job.spec_id)  # it gets another one
        spec = _provision_spec(specs[-1], order.limit_s)
        grant = m.Grant(job.id, order.attempt, order.token, spec.id, job.spec.provision, 0, job.learned)
        peer.send(m.Work([grant], [m.Seat(order.token, job.size)], [spec], envs))

    def _send_parts(self, peer: Peer, jobs: list[Job], leases: list[tuple[int, int, int]]) -> None:
        """Parts, of leases that are still valid, for the host of this runner to open."""
        runner = self._world.runners.get(peer.runner)
        for job, (id, attempt, token) in zip(jobs, leases, strict=True):
            lease = job.lease
            given = lease.given if lease is not None and lease.token == token and lease.ended is None else None
            if given is None or runner is None:
                continue  # it moved on before it was sent
            specs: list[m.RunSpec] = []
            envs: list[tuple[int, bytes]] = []
            if job.spec_id not in peer.specs:
                self._tell_spec(peer, job, specs, envs)
            cores = dict(zip(dict(given.nodes), given.cpu_lists, strict=False)).get(runner.host, "")
            walltime_s = given.walltime_s if given.walltime_s != job.spec.walltime_s else None
            allocation = m.Allocation(cpu_list=cores, nodes=given.nodes, walltime_s=walltime_s)
            part = m.Part(id, attempt, token, job.spec_id, allocation, job.learned, job.element)
            peer.send(m.Work([], [], specs, envs, [part]))


def _allocation(job: Job, given: Given) -> m.Allocation | None:
    """What a runner must know of an allocation; None: nothing beyond the specification."""
    walltime_s = given.walltime_s if given.walltime_s != job.spec.walltime_s else None
    if not given.cpu_list and not given.elsewhere and walltime_s is None:
        return None
    return m.Allocation(cpu_list=given.cpu_list, nodes=given.nodes, walltime_s=walltime_s)


def _provision_spec(spec: m.RunSpec, limit_s: float) -> m.RunSpec:
    """A specification for the command that makes a machine ready: without all that follows the job's own."""
    return msgspec.structs.replace(
        spec, id=-spec.id, walltime_s=limit_s, on_success=(), on_failure=(), on_exit=(), stdout="", stderr="",
        interactive=False, checkpoint_s=None, done_at_walltime=False,
    )  # fmt: skip


#: Fields of a specification that a runner must know.
_RUN_FIELDS = tuple(name for name in m.RunSpec.__struct_fields__ if name != "id")


def _run_spec(job: Job) -> m.RunSpec:
    fields = {name: getattr(job.spec, name) for name in _RUN_FIELDS}
    return m.RunSpec(id=job.spec_id, **fields | {"group": first_of(job.spec.group)})
