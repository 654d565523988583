"""`rota populate`: tables that fill themselves."""

from __future__ import annotations

import logging
import signal
from typing import TYPE_CHECKING, Any

import click

from rota.cli.command import Group, Invocation, print_json
from rota.cli.render.printing import print_err, print_out
from rota.errors import NoManager, RotaError

if TYPE_CHECKING:
    from rota.populate.config.configuration import Table
    from rota.populate.config.file import ConfigurationFile
    from rota.populate.loop.cycles import Manager
    from rota.populate.source.base import Source

_PATIENCE_S = 10


class _Printed(logging.Handler):
    """What is logged comes from databases and from the code of tables: it is escaped as all output is."""

    def emit(self, record: logging.LogRecord) -> None:
        print_err(self.format(record))


@click.group("populate", cls=Group)
def populate() -> None:
    """Tables that fill themselves: one manager hands out the keys that are missing."""


@populate.command("run")
@click.argument("file")
@click.option("--once", is_flag=True, help="One cycle.")
@click.option("--until-empty", is_flag=True, help="End when nothing is left to be computed.")
def run(call: Invocation, file: str, once: bool, until_empty: bool) -> int:
    """Ask which keys of the tables are missing, and send them to workers in batches.

    It serves its status at the address that the file says. The file is read again when it has changed; a bad one
    is refused, and the old one stays in force. The exit status is 1 if a table could not be asked at last.

    \b
    Examples:
      rota populate run tables.yaml
      rota populate run tables.yaml --until-empty
    """
    from rota.populate.config.file import ConfigurationFile
    from rota.populate.loop.api import Api
    from rota.populate.loop.cycles import Manager

    if once and until_empty:
        raise click.UsageError("--once and --until-empty are two things")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", handlers=[_Printed()])
    configuration = ConfigurationFile(file)
    manager = Manager(configuration)
    settings = configuration.current.manager
    api = Api(manager, host=settings.api_host, port=settings.api_port) if settings.api_run and not once else None
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: manager.stop())
    try:
        if once:
            manager.cycle()
        else:
            manager.run(until_empty=until_empty)
    finally:
        if api is not None:
            api.close()
        manager.close()
    if call.json:
        print_json(manager.current_status())
    return 1 if _failed(manager) else 0


def _failed(manager: Manager) -> bool:
    return bool(manager.errors) or manager.health == "standby"


@populate.command("check")
@click.argument("file")
def check(call: Invocation, file: str) -> int:
    """Check a configuration: its syntax, that each table can be imported and asked, and the transport.

    \b
    Examples:
      rota populate check tables.yaml
    """
    configuration = _file(file)
    from rota.populate.loop.sources import Sources
    from rota.populate.transport.base import TransportFailed
    from rota.populate.transport.opening import open_transport

    found: dict[str, Any] = {"tables": {}, "transport": {"warnings": [], "error": None}}
    sources = Sources(configuration.current, configuration.directory)
    try:
        for table, source in sources:
            found["tables"][table.name] = _checked(table, source)
    finally:
        sources.close()
    try:
        transport = open_transport(configuration.current)
        transport.queues(())
        found["transport"]["warnings"] = transport.warnings()
        transport.close()
    except TransportFailed as error:
        found["transport"]["error"] = str(error)
    return _shown(call, found)


def _checked(table: Table, source: Source) -> dict[str, Any]:
    """The table is imported, and asked once with the conditions of its bins."""
    from rota.populate.source.base import Wanted

    try:
        warnings = list(source.open())
        look = source.look([Wanted(each.where, 0) for each in table.bins])
    except RotaError as error:
        return {"warnings": [], "error": error.text}
    if look.unbinned:
        warnings.append(f"{look.unbinned} missing keys are in no bin")
    return {"warnings": warnings, "error": None}


def _shown(call: Invocation, found: dict[str, Any]) -> int:
    parts = [*found["tables"].items(), ("transport", found["transport"])]
    failed = any(part["error"] is not None for _, part in parts)
    if call.json:
        print_json(found)
        return int(failed)
    for name, part in parts:
        if part["error"] is not None:
            print_err(f"{name}: {part['error']}")
        elif not call.quiet:
            print_out(f"{name}: ok")
        for warning in part["warnings"]:
            print_err(f"{name}: warning: {warning}")
    return int(failed)


@populate.command("migrate")
@click.argument("file")
def migrate(call: Invocation, file: str) -> int:
    """Prepare the databases: the status 'queued' for DataJoint 0.14, a jobs table for each plain query.

    What is there already stays as it is.

    \b
    Examples:
      rota populate migrate tables.yaml
    """
    configuration = _file(file)
    from rota.populate.loop.sources import Sources

    done: dict[str, list[str]] = {}
    failed: dict[str, str] = {}
    sources = Sources(configuration.current, configuration.directory)
    try:
        for table, source in sources:
            try:
                done[table.name] = source.migrate()
            except RotaError as error:
                failed[table.name] = error.text
    finally:
        sources.close()
    if call.json:
        print_json({"done": done, "errors": failed})
        return int(bool(failed))
    for name, steps in done.items():
        for step in steps or ["nothing to do"]:
            if not call.quiet:
                print_out(f"{name}: {step}")
    for name, text in failed.items():
        print_err(f"{name}: {text}")
    return int(bool(failed))


@populate.command("status")
@click.argument("file", required=False)
def status(call: Invocation, file: str | None) -> int:
    """Show what the manager of tables does, asked over its API; FILE says where that is.

    \b
    Examples:
      rota populate status
      rota populate status tables.yaml --json
    """
    from rota.cli.render.populate_text import print_status
    from rota.populate.config.configuration import ManagerSettings

    settings = _file(file).current.manager if file is not None else ManagerSettings()
    found = _asked(settings.api_host, settings.api_port)
    if call.json:
        print_json(found)
    else:
        print_status(found)
    return 0


def _asked(host: str, port: int) -> Any:
    import http.client

    from msgspec import DecodeError, convert, json

    from rota.populate.loop.status import Status

    connection = http.client.HTTPConnection(host, port, timeout=_PATIENCE_S)
    try:
        connection.request("GET", "/status")
        return convert(json.decode(connection.getresponse().read()), Status)
    except (OSError, http.client.HTTPException, DecodeError, ValueError):
        hint = "start one with: rota populate run FILE; or give the FILE that says where it is"
        raise NoManager(f"no manager of tables answers at {host}:{port}", hint=hint) from None
    finally:
        connection.close()


def _file(name: str) -> ConfigurationFile:
    """Raises `BadInput`."""
    from rota.populate.config.file import ConfigurationFile

    return ConfigurationFile(name)
