"""What an attempt is given: its share of each host, its walltime, and whether it is suspended."""

from __future__ import annotations

from msgspec import Struct

from rota.plan.size import Size


class Pause(Struct, frozen=True, array_like=True, gc=False):
    """Where an attempt is on its way from running to suspended and back, and how long it has been suspended."""

    phase: str = ""  #: freezing, frozen, queued (for its cores), thawing; empty: it runs
    keeps: bool = False  #: it gives up nothing meanwhile
    since: float | None = None  #: wall time; None: it is not suspended now
    before_s: float = 0.0  #: it was suspended for so long before that


class Promised(Struct, frozen=True, array_like=True, gc=False):
    """What a reservation was granted and did not get: it began with fewer resources."""

    cores: int
    nodes: tuple[str, ...]
    missing: str = ""  #: in words, what was missing and why


class Provision(Struct, frozen=True, array_like=True, gc=False):
    """One machine that is made ready for an attempt (`core.machines.provisioning`)."""

    host: str
    asked_at: float  #: wall time
    token: int  #: fences what is reported of it
    here: bool = False  #: by a command on the machine itself, not by one on the manager's host
    phase: str = "waiting"  #: or installing, done, failed
    began_at: float | None = None  #: of the phase `installing`
    ended_at: float | None = None
    accepted: bool = False  #: its command has succeeded
    ready: bool = False  #: somebody said that the machine is ready
    returned: bool = False  #: another agent has joined from there since
    boot_id: str = ""  #: of the machine when it was asked for
    pid: int = 0  #: of its agent then
    ticket: str = ""  #: hash of the secret with which the machine may say that it is ready
    via: str = ""  #: the deploy host, whose agent runs the site's command; empty: the manager's host


class Hold(Struct, frozen=True, array_like=True, gc=False):
    """Machines that stay taken after the run."""

    since: float  #: wall time
    until: float
    ended_at: float | None = None


class Given(Struct, frozen=True, array_like=True, gc=False):
    """What the planner gave to one attempt."""

    size: Size  #: what it takes of the host that it begins on
    resources: str = ""  #: ids, like ``1-8,17``
    cpu_list: str = ""  #: of that host's cores, counted from 0
    nodes: tuple[tuple[str, int], ...] = ()  #: hosts, and how many cores of each
    walltime_s: float | None = None
    cpu_lists: tuple[str, ...] = ()  #: of the cores of each of these hosts, likewise
    runners: tuple[str, ...] = ()  #: those of these hosts to which it was leased, where there are several
    elsewhere: bool = False  #: it only holds these: its command, if it has one, runs on another host
    pause: Pause | None = None  #: has it ever been suspended?
    more_s: float = 0.0  #: of walltime: asked for, and not granted yet
    changed: bool = False  #: was its walltime changed while it ran?
    promised: Promised | None = None  #: more than it has, where it is a reservation that began with fewer
    provisions: tuple[Provision, ...] = ()  #: its machines, if they are made ready for it first
    runner: str = ""  #: the runner that it went to while it was prepared; empty: the one that it was leased to
    hold: Hold | None = None  #: did it keep its machines after the run?
    provisioned_s: float = 0.0  #: how long machines were provisioned for earlier attempts

    @property
    def fewer(self) -> str:
        """In words, that it has less than it was promised; empty: it has all of it."""
        if self.promised is None:
            return ""
        cores, nodes = sum(number for _host, number in self.nodes), len(self.promised.nodes)
        of_nodes = f" on {len(self.nodes)} of {nodes} nodes" if nodes > 1 else ""
        return f"began with {cores} of {self.promised.cores} cores{of_nodes}: {self.promised.missing}"
