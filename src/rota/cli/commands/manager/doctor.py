"""`rota doctor`: check the machine and the deployment."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.render.printing import print_out

if TYPE_CHECKING:
    from rota.home import Home
    from rota.wire.sums import NodeView
    from rota.wire.views import ManagerView

#: (how good, what was found, what to do)
Finding = tuple[str, str, str]

_NOT_GUARANTEED: Final = (
    "not guaranteed: a job can change its cores, and one that forks all the time may outrun a freeze or a kill"
)
_ENOUGH_FILES: Final = 1024
_ENOUGH_DISK: Final = 1 << 30


@command("doctor")
@click.option("--quick", is_flag=True, help="Do not read the database and the kept output.")
def doctor(call: Invocation, quick: bool) -> int:
    """Check this machine and this deployment; exit status 1 if something is wrong.

    It reads the whole database, the kept output and the journals of runners, and verifies their checksums. A
    manager may be running. With gigabytes of data this takes a while.

    \b
    Examples:
      rota doctor
      rota doctor --quick
      rota doctor --json
    """
    home = call.home
    checks = {name: check for name, check in _CHECKS.items() if not (quick and name in _READ_ALL)}
    findings = [(name, *finding) for name, check in checks.items() for finding in _tried(check, call, home)]
    bad = any(level == "bad" for _, level, _, _ in findings)
    if call.json:
        body = {
            "ok": not bad,
            "checks": [
                {"name": name, "level": level, "message": found, "hint": hint}
                for name, level, found, hint in findings
            ],
        }
        print_json(body)
    else:
        from rota.cli.render.text import coloured, paint

        colours = {"good": "complete", "note": "held", "bad": "failed"}
        on = coloured(sys.stdout)
        for name, level, found, hint in findings:
            if call.quiet and level != "bad":
                continue
            tail = f"; {hint}" if hint else ""
            print_out(paint(f"{level:<5}", colours[level], on=on) + f" {name}: {found}{tail}")
    return 1 if bad else 0


def _tried(check: Callable[[Invocation, Home], Iterator[Finding]], call: Invocation, home: Home) -> list[Finding]:
    """Run a check; an exception is a finding too."""
    try:
        return list(check(call, home))
    except Exception as error:
        return [("bad", f"{type(error).__name__}: {error}", "")]


def _python(_call: Invocation, _home: Home) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= (3, 11)
    yield "good" if good else "bad", version, "" if good else "Rota needs 3.11 or later"


def _sqlite(_call: Invocation, _home: Home) -> Iterator[Finding]:
    import sqlite3

    found = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < (3, 38):
        yield "bad", f"{found} is too old", "use a Python with SQLite 3.38 or later"
    elif sqlite3.sqlite_version_info < (3, 51, 3):
        yield "good", f"{found} (only the manager may write to the database)", ""
    else:
        yield "good", found, ""


def _directory(_call: Invocation, home: Home) -> Iterator[Finding]:
    from rota.errors import RotaError
    from rota.home import check_private

    if not home.path.exists():
        yield "note", f"{home} does not exist yet", "it is made when a manager starts"
        return
    try:
        check_private(home.path)
    except RotaError as error:
        yield "bad", error.message, error.hint
        return
    if home.path.stat().st_mode & 0o077:
        yield "note", f"others may look into {home}", f"run: chmod 700 '{home}'"
    else:
        yield "good", f"{home} is private", ""


def _identity(_call: Invocation, home: Home) -> Iterator[Finding]:
    from rota.store.home import identity
    from rota.store.home.checkup import deployment_of

    found = identity.read(home.path)
    if found is None:
        if home.database.exists():
            yield "note", f"{home} has no {identity.NAME}", "it is made when a manager starts"
        return
    if why := identity.contradiction(home.path, found, deployment_of(home.path, in_use=_in_use(home))):
        yield "bad", why.message, why.hint
    else:
        yield "good", f"deployment {found.id}", ""


def _bugs(view: ManagerView) -> Iterator[Finding]:
    """Bugs that the manager met, and what does not go on because of them."""
    bugs, report = view.bugs, "report it, with 'rota manager logs'"
    resume = "'rota manager resume' tries again"
    if view.safe_mode:
        yield "bad", f"nothing starts because of a bug: {view.safe_mode}", resume
    if bugs is None:
        return
    for each in bugs.recent:
        times = f" ({each.times} times)" if each.times > 1 else ""
        yield (
            "note",
            f"a bug in {each.place} on {each.at.astimezone():%Y-%m-%d %H:%M:%S}{times}: {each.error}",
            report,
        )
    if bugs.left_out:
        yield "bad", f"not decided any more because of bugs: {', '.join(bugs.left_out)}", resume
    if bugs.quarantined:
        yield "bad", f"{bugs.quarantined} requests or reports are not decided because of bugs", resume
    if bugs.frozen:
        frozen = ", ".join(map(str, bugs.frozen))
        yield "bad", f"jobs left out of all decisions because of a bug: {frozen}", "'rota show' has their reports"


def _in_use(home: Home) -> bool:
    """Does a manager have the database open? Trying its lock could keep out a manager that is just starting."""
    from rota.client.starter import holder_lives

    return holder_lives(home)


def _database(_call: Invocation, home: Home) -> Iterator[Finding]:
    from rota.store.home.checkup import is_vouched_for, wrong_with_database

    in_use = _in_use(home)
    wrong = list(wrong_with_database(home.path, in_use=in_use))
    hint = "keep the file, and restore a backup ('rota manager restore')"
    for sentence in wrong:
        yield "bad", sentence, hint
    if not wrong and home.database.exists():
        vouched = not in_use and is_vouched_for(home.path)
        yield "good", f"{home.database} agrees with itself" + (", and is as it was closed" if vouched else ""), ""


def _output(_call: Invocation, home: Home) -> Iterator[Finding]:
    from rota.store.home.checkup import wrong_with_output

    for sentence, known in wrong_with_output(home.path, in_use=_in_use(home)):
        yield "note" if known else "bad", sentence, "see 'rota show'" if known else "restore the file, if you can"


def _journals(_call: Invocation, home: Home) -> Iterator[Finding]:
    from rota.runner.report.journal import read

    for path in sorted(home.runners.glob("*/journal")):
        with contextlib.suppress(FileNotFoundError):  # its runner has just ended
            if not read(str(path)).whole:
                hint = "attempts that it no longer shows are taken for lost; keep the file"
                yield "bad", f"{path} is damaged", hint


def _existing(home: Home) -> str:
    path = home.path
    while not path.exists():
        path = path.parent
    return str(path)


def _file_system(_call: Invocation, home: Home) -> Iterator[Finding]:
    from rota.store.home.files import file_system_of, is_network

    where = os.path.realpath(_existing(home))
    kind = file_system_of(Path(where)) or "unknown"
    if is_network(kind):
        yield "bad", f"{where} is on {kind}", "choose a local disk with --home or ROTA_HOME"
    elif kind == "tmpfs":
        yield "note", f"{where} is on tmpfs", "jobs do not survive a reboot there"
    else:
        yield "good", kind, ""


def _disk(_call: Invocation, home: Home) -> Iterator[Finding]:
    from rota.store.home.files import mount_of
    from rota.units import about_size

    found = os.statvfs(_existing(home))
    free = found.f_bavail * found.f_frsize
    level = "good" if free >= _ENOUGH_DISK else "bad" if free < _ENOUGH_DISK // 16 else "note"
    where = mount_of(Path(_existing(home)))
    yield level, f"{about_size(free)} free on {where}", "" if level == "good" else "make room"
    if found.f_files and found.f_favail < 10_000:
        yield "note", f"only {found.f_favail} files can be made", "remove some"


def _configuration(_call: Invocation, home: Home) -> Iterator[Finding]:
    from rota.config import load
    from rota.errors import RotaError
    from rota.pool_settings import check_address

    try:
        loaded = load(home)
        warnings = [check_address(pool, loaded.settings.host) for pool in loaded.settings.pools.values()]
    except RotaError as error:
        yield "bad", error.message, error.hint
    else:
        yield "good", ", ".join(loaded.files) or "no files, only defaults", ""
        yield from (("note", warning, "") for warning in warnings if warning)


def _pools(_call: Invocation, home: Home) -> Iterator[Finding]:
    from rota.cli.commands.manager.doctor_pools import findings

    return findings(home)


def _manager(call: Invocation, _home: Home) -> Iterator[Finding]:
    from rota.errors import NoManager, RotaError

    try:
        with call.connect() as client:
            begun = time.perf_counter()
            view = client.manager_status()
            answer_ms = (time.perf_counter() - begun) * 1000
            broken = client.manager_doctor()
    except NoManager as error:
        yield "note", error.message, error.hint
        return
    except RotaError as error:
        yield "bad", error.message, error.hint
        return
    yield "good", f"pid {view.pid} answers in {answer_ms:.1f} ms, a commit takes {view.commit_ms:.1f} ms", ""
    for text in broken if isinstance(broken, list) else []:
        yield "bad", f"a broken promise: {text}", "report it, with 'rota manager logs'"
    yield from _bugs(view)
    if view.clock_off_s is not None:
        from rota.units import about_duration

        off = f"{about_duration(abs(view.clock_off_s))} {'ahead' if view.clock_off_s > 0 else 'behind'}"
        yield (
            "note",
            f"the clock of the manager's host was set: {off}",
            "if it is wrong, set it within the hour",
        )
    away = [runner.id for runner in view.runners if not runner.connected]
    if away:
        yield "note", f"runners that do not answer: {', '.join(away)}", "see 'rota jobs state=lost'"


def _nodes(call: Invocation, _home: Home) -> Iterator[Finding]:
    from rota.errors import RotaError

    try:
        with call.connect() as client:
            nodes, site = client.nodes(), client.site("host", "energy")
    except RotaError:
        return  # the check of the manager has said so
    if nodes:
        yield from node_findings(nodes, site.site())


def node_findings(nodes: list[NodeView], site: dict[str, dict[str, Any]]) -> Iterator[Finding]:
    """How many nodes are usable, and which of the others need attention.

    `site`: records of hosts and their energy.
    """
    from rota.cli.commands.manager.doctor_machines import condition_findings
    from rota.core.machines.sleep_and_wake import SLEEPING

    usable = [each for each in nodes if each.usable]
    cores = sum(each.cores for each in usable)
    found = f"{len(usable)} of {len(nodes)} may be used now, with {cores} cores"
    asleep = sum(each.state in SLEEPING and not each.drain and not each.closed for each in nodes)
    found += f"; {asleep} asleep, to be woken when needed" if asleep else ""
    ready = len(usable) + asleep
    yield "good" if ready else "note", found, "" if ready == len(nodes) else "see 'rota node list'"
    yield from _doubtful(nodes, site)
    yield from condition_findings(nodes, site)


def _doubtful(nodes: list[NodeView], site: dict[str, dict[str, Any]]) -> Iterator[Finding]:
    """Silent nodes need their agent to be started; nodes that are marked as unfit need an administrator."""
    from rota.plan.language.hostlist import fold
    from rota.plan.site.site_builder import energy_of, host_record

    said = {host for host in site.get("host", {}) if host_record(site, host).state != "alive"}
    said |= {host for host, its in energy_of(site).items() if its["state"] == "failed"}  # it could not be woken
    for word in ("suspected", "dead"):
        if ill := fold(each.host for each in nodes if each.state == word and each.host in said):
            hint = f"see 'rota node show HOST'; once mended: rota node set {ill} --state alive"
            yield "note", f"{word}: {ill}", hint
    doubtful = (each.host for each in nodes if each.state in ("suspected", "dead") and each.host not in said)
    if silent := fold(doubtful):
        yield "note", f"no agent answers on {silent}", f"start it there, or: rota node add {silent}"


def _containment(_call: Invocation, home: Home) -> Iterator[Finding]:
    from rota.config import load
    from rota.runner.contain.fences import Fences, found_here

    settings = load(home).settings
    if script := settings.containment_script:
        if os.access(script, os.X_OK):
            yield "good", f"by the script {script}", ""
        else:
            yield "bad", f"the script {script} cannot be executed", "make it so, or unset containment_script"
    kind, lines = found_here(Fences(f"doctor-{os.getpid()}"))
    if settings.containment == "session" or kind == "none":
        why = "no control group can be made here" if kind == "none" else "containment is 'session'"
        yield "note", f"{why}: jobs are held by sessions, the sub-reaper and affinity", _NOT_GUARANTEED
        return
    yield "good", f"control groups ({kind})", ""
    for level, text in lines:
        yield level, text, ""


def _open_files(_call: Invocation, _home: Home) -> Iterator[Finding]:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    level = "good" if hard >= _ENOUGH_FILES else "note"
    yield level, f"{soft} (at most {hard})", "" if level == "good" else "raise 'ulimit -Hn'"


def _machine(_call: Invocation, _home: Home) -> Iterator[Finding]:
    from rota.client.submit_environment import default_memory
    from rota.host import usable_memory
    from rota.units import about_size

    cores = len(os.sched_getaffinity(0))
    memory = f"{about_size(usable_memory())} memory"
    yield "good", f"{cores} cores, {memory}; a job gets {about_size(default_memory())} unless it says", ""


def _clock(_call: Invocation, _home: Home) -> Iterator[Finding]:
    from rota.boot import boot_id

    if time.time() < 1_700_000_000:
        yield "bad", "the clock is years behind", "set the time"
        return
    if not boot_id():
        yield "bad", "/proc is not there", "Rota needs it to tell which processes are alive"
        return
    yield "good", f"{time.strftime('%Y-%m-%d %H:%M:%S %Z')}", ""


_CHECKS: Final[dict[str, Callable[[Invocation, Home], Iterator[Finding]]]] = {
    "python": _python,
    "sqlite": _sqlite,
    "home": _directory,
    "identity": _identity,
    "file system": _file_system,
    "disk": _disk,
    "configuration": _configuration,
    "pools": _pools,
    "manager": _manager,
    "nodes": _nodes,
    "database": _database,
    "output": _output,
    "journals": _journals,
    "containment": _containment,
    "open files": _open_files,
    "machine": _machine,
    "clock": _clock,
}
#: Checks that read whole files; `--quick` skips them.
_READ_ALL: Final = frozenset({"database", "output", "journals"})
