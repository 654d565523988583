"""`python -m rota.manager`: open the store, recover, listen, and run until the manager is stopped."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime

from rota import __version__, config
from rota.boot import boot_id, since_boot
from rota.core.accounts.fair_share_usage import kept_hours
from rota.core.recovery.recover import recover
from rota.core.recovery.starting import starting_changes
from rota.core.restart import Restart, first_seat
from rota.core.stored import StoreSnapshot
from rota.core.submit.spec_library import Library
from rota.errors import Bug, EnvironmentFault, RotaError
from rota.home import Home, ManagerFile
from rota.logs import log_to
from rota.manager.feature import ManagerFeature
from rota.manager.features import BUILT_IN, engine_features
from rota.manager.host import gateway
from rota.manager.loop import clock, reexecution
from rota.manager.loop.bugs import tried_twice
from rota.manager.loop.deployment import Deployment
from rota.manager.loop.listening import bind_again, listen_locally, listen_remotely
from rota.manager.loop.service import Manager
from rota.plan.dispatch.planning import Planning
from rota.pools.base import Pool
from rota.pools.local import LocalPool
from rota.settings import Settings
from rota.store.base import Store
from rota.store.home import identity
from rota.store.home.home_lock import HomeLock
from rota.store.opening import default_url, open_store
from rota.time_zones import local_zone
from rota.wire import tokens
from rota.wire.tokens import TokenBook

log = logging.getLogger("rota.manager")

#: Makes the pool of a deployment.
MakePool = Callable[[Home, Settings], Pool]

#: Thresholds of the garbage collector. Jobs form no reference cycles: collecting often would find nothing.
COLLECTED_AFTER = (50_000, 20, 100)

_HOME_CHECK_S = 1.0


def main(
    argv: list[str] | None = None,
    *,
    make_pool: MakePool = LocalPool,
    features: tuple[ManagerFeature, ...] = BUILT_IN,
) -> int:
    """Run a manager in this process. The first line on --ready-fd says whether it listens."""
    parser = argparse.ArgumentParser(prog="python -m rota.manager", description=__doc__)
    parser.add_argument("--home", required=True)
    parser.add_argument("--ready-fd", type=int, default=None, help="descriptor for one line: ready, or why not")
    parser.add_argument("--idle-stop", type=float, default=None, help="stop after this many idle seconds")
    parser.add_argument(reexecution.AGAIN, action="store_true", help="a new image of a manager that met a bug")
    parser.add_argument(reexecution.DRAIN, action="store_true", help="start nothing, and stop when nothing runs")
    parser.add_argument(
        reexecution.GATEWAY, nargs=3, metavar=("PID", "URL", "HOST"), help="the gateway of the image before"
    )
    options = parser.parse_args(argv)
    reexecution.open_standard_streams()
    ready = _Ready(options.ready_fd)
    try:
        import uvloop

        return uvloop.run(_run(Home(options.home), ready, make_pool, features, options))
    except RotaError as error:
        ready.refuse(error)
        print(f"rota: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        log.exception("the manager failed")
        ready.refuse(Bug(f"the manager failed: {error}", hint="see 'rota manager logs'"))
        raise


class _Ready:
    """Reports once to the starting process whether the manager listens."""

    def __init__(self, handle: int | None) -> None:
        self._handle = handle

    def ok(self, pid: int, socket_path: str) -> None:
        self._say({"ok": True, "pid": pid, "socket": socket_path})

    def refuse(self, error: RotaError) -> None:
        self._say({"error": {"code": error.code, "message": error.message, "hint": error.hint}})

    def _say(self, what: dict[str, object]) -> None:
        if self._handle is None:
            return
        with contextlib.suppress(OSError):
            os.write(self._handle, json.dumps(what).encode() + b"\n")
            os.close(self._handle)
        self._handle = None


async def _run(
    home: Home,
    ready: _Ready,
    make_pool: MakePool,
    features: tuple[ManagerFeature, ...],
    options: argparse.Namespace,
) -> int:
    home.create()
    settings = config.load(home).settings
    log_to(home.logs / "manager.log", settings.log_level)
    deployment = ""

    def approve(stored: str) -> None:
        nonlocal deployment
        reexecution.refuse_second(home)
        deployment = identity.settled(home.path, stored)

    lock = reexecution.lock_when_free(home.path, again=options.again)
    try:
        store = open_store(default_url(home.path), approve=approve)
    except BaseException:
        lock.release()
        raise
    manager: Manager | None = None
    again = False
    try:
        home.idle_stopped.unlink(missing_ok=True)
        listener = bind_again(home, settings)
        pool = make_pool(home, settings)
        pool.start()  # its runner starts during the recovery
        manager = tried_twice(
            lambda: _recover(home, settings, store, pool, features, deployment=deployment, options=options)
        )
        server = await listen_locally(home, manager)
        manager.start()
        host, port = listener.getsockname()[:2]
        manager.deployment.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        _write_manager_file(home, manager)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, _on_signal, manager, number)
        ready.ok(os.getpid(), str(home.socket))
        log.info("manager %s started, generation %d", __version__, manager.deployment.generation)
        tasks = [
            loop.create_task(listen_remotely(home, manager, listener)),
            loop.create_task(_watch_home(lock, manager)),
        ]
        if options.gateway is not None:
            pid, url, host = options.gateway
            manager.gateway.adopt(gateway.LeftGateway(int(pid), url, host))
        if options.idle_stop is None and settings.http != gateway.OFF:
            _serve_http(manager)
        await manager.stopped.wait()
        if manager.deployment.stopped_idle and lock.holds():
            # Before the socket closes: a client that finds it closed looks for this file.
            with contextlib.suppress(OSError):
                home.idle_stopped.touch(mode=0o600)
        if manager.starts_anew:
            reexecution.announce(home)
        for task in tasks:
            task.cancel()
        server.close()
        log.info("manager stopping")
        again = manager.starts_anew and await manager.drop_undecided() and reexecution.is_installed()
        if manager.failure is None and not again and lock.holds():
            # Only while this process holds the home: a next manager has files of the same names.
            for path in (home.socket, home.manager_file, home.former_socket):
                if path is not None:
                    path.unlink(missing_ok=True)
    finally:
        if manager is None:
            store.close()
            lock.release()
        elif manager.close(again=again):
            lock.release()  # otherwise a commit may still be under way, and the end of this process releases it
    if again:
        reexecution.reexecute(manager.deployment, draining=manager.draining, gateway=manager.gateway.left)
    if manager.failure is not None or manager.starts_anew:
        _exit_now(manager.failure or manager.bug)
    return 0


async def _watch_home(lock: HomeLock, manager: Manager) -> None:
    """Stop if the home was removed: no client could find this manager, and a second one could be started."""
    while manager.failure is None:
        await asyncio.sleep(_HOME_CHECK_S)
        if not lock.holds():
            manager.fail(
                EnvironmentFault(f"{manager.deployment.home} was removed, or something else is in its place")
            )


def _serve_http(manager: Manager) -> None:
    """Start the gateway. Without a free port the manager runs on: jobs are more important."""
    try:
        log.info("the dashboard is at %s", manager.gateway.start())
    except RotaError as error:
        log.error("no dashboard: %s", error)  # noqa: TRY400


def _on_signal(manager: Manager, number: signal.Signals) -> None:
    log.info("stopping on %s", number.name)
    manager.stop(kill=False)


def _exit_now(error: BaseException | None) -> None:
    """Exit at once and send nothing more; the next start recovers what was acknowledged."""
    print(f"rota: the manager stopped: {error or 'another version is installed'}", file=sys.stderr, flush=True)
    os._exit(70)


def _recover(
    home: Home,
    settings: Settings,
    store: Store,
    pool: Pool,
    features: tuple[ManagerFeature, ...],
    *,
    deployment: str,
    options: argparse.Namespace,
) -> Manager:
    snapshot = store.load()
    generation = int(snapshot.meta.get("generation", "0")) + 1
    book = tokens.open_home(home.tokens, now=time.time())
    clock.begin(_beginning(snapshot, book))
    changes = starting_changes(snapshot)
    changes.meta |= {"generation": str(generation), "deployment": deployment, clock.CLOCK: clock.reading().text()}
    store.commit(changes)
    wall = clock.now()
    first, end = kept_hours(wall)
    restart = Restart(
        snapshot=snapshot,
        wall=wall,
        mono=time.monotonic(),
        generation=generation,
        hosts={host.host: host.capacity for host in pool.hosts()},
        zone=local_zone(),
        version=__version__,
        usage=store.accounts(first=first, end=end).rows,
    )
    placement = Planning(first_seat=first_seat(generation))
    world = recover(placement, restart, features=engine_features(features))
    library = Library(
        specs=snapshot.specs,
        env_ids=snapshot.env_ids,
        next_spec=snapshot.next_spec,
        next_env=snapshot.next_env,
    )
    del snapshot, restart
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)
    sys.setswitchinterval(0.0005)
    world.draining = options.drain
    facts = Deployment(
        home,
        settings,
        id=deployment,
        generation=generation,
        idle_stop_s=options.idle_stop,
        again=options.again,
    )
    return Manager(facts, world=world, store=store, library=library, tokens=book, pool=pool, features=features)


def _beginning(snapshot: StoreSnapshot, book: TokenBook) -> float:
    """The time to start with, from the wall clock and from what the last manager stored."""
    now = clock.Reading(boot_id(), since_boot(), time.time())
    newest = max((row.at / 1e6 for row in snapshot.machines.values()), default=0.0)
    for row in snapshot.open_attempts:
        newest = max(newest, row.leased_at, row.started_at or 0.0)
    expire = (record.expires_at for record in book.list() if record.expires_at is not None)
    return clock.starting_time(
        clock.reading_of(snapshot.meta.get(clock.CLOCK)),
        newest=newest,
        at_stake=bool(snapshot.jobs) or any(newest < at for at in expire),
        now=now,
    )


def _write_manager_file(home: Home, manager: Manager) -> None:
    facts = ManagerFile(
        pid=os.getpid(),
        address=manager.deployment.address,
        version=__version__,
        generation=manager.deployment.generation,
        started_at=datetime.now(UTC).isoformat(),
        boot=boot_id(),
    )
    reexecution.write_manager_file(home, facts)
