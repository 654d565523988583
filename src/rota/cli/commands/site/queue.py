"""`rota queue`: the queues of the site and in which order their jobs are planned."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from rota.cli.command import Group, Invocation
from rota.cli.render.printing import print_err

if TYPE_CHECKING:
    from rota.client.calls import SiteChange
    from rota.plan.policy.policy import Queue
    from rota.wire.views import SiteView

F = TypeVar("F", bound=Callable[..., Any])

#: The word that takes a value back to the default.
_NONE: Final = "none"


@click.group("queue", cls=Group)
def queue() -> None:
    """Queues, their priorities and policies."""


def _fields(function: F) -> F:
    for option in reversed(
        (
            click.option("--priority", metavar="N", help="Higher priorities are planned first (default: 2)."),
            click.option(
                "--order", metavar="fifo|fairshare|multifactor", help="Order of its jobs (default: fifo)."
            ),
            click.option(
                "--backfill", metavar="none|easy|easy-sjbf|conservative",
                help="Backfilling of its jobs (default: conservative).",
            ),
            click.option("--walltime", metavar="TIME", help="Default walltime of its jobs; 'none' for no limit."),
            click.option(
                "--max-wait", metavar="TIME", help="Jobs that have waited this long go to the front (default: 7d)."
            ),
            click.option(
                "--share", "shares", metavar="WHO=SHARE", multiple=True,
                help="Target share, 0 to 1, of a user or of project:NAME; WHO=none removes it.",
            ),
            click.option(
                "--max-priority", metavar="N",
                help="Highest priority that users may give their jobs (default: none, no limit).",
            ),
            click.option(
                "--for", "who", metavar="all|admins",
                help="Who may submit to it (default: all; for the queue 'admin': admins).",
            ),
        )
    ):  # fmt: skip
        function = option(function)
    return function


@queue.command("list")
def list_queues(call: Invocation) -> int:
    """List the queues, the one that is planned first at the top.

    \b
    Examples:
      rota queue list
    """
    from rota.cli.commands.site import site_records
    from rota.core.site.policy import queues_of

    with call.connect_to_read() as client:
        found = queues_of(client.site("queue").site())
    return site_records.show(
        call,
        {"queues": [_body(name, each) for name, each in found.items()]},
        head=[
            "QUEUE",
            "PRIORITY",
            "ORDER",
            "BACKFILL",
            "WALLTIME",
            "MAX WAIT",
            "FOR",
            "JOBS' PRIORITY",
            "STATE",
            "SHARES",
        ],
        rows=[_row(name, each) for name, each in found.items()],
        empty="no queues",
        right="lr",
        kept=6,
        notes=[_note(each) for each in found.values()],
    )


@queue.command("add")
@click.argument("name", metavar="NAME")
@_fields
def add_queue(call: Invocation, name: str, **options: Any) -> int:
    """Add a queue.

    \b
    Examples:
      rota queue add night --priority 1 --walltime 8h
      rota queue add teaching --order fairshare --share alice=0.5 --share project:x=0.2
    """
    return _write(call, name, options, new=True)


@queue.command("set")
@click.argument("name", metavar="NAME")
@_fields
def set_queue(call: Invocation, name: str, **options: Any) -> int:
    """Change a queue; what is not given stays as it is. Waiting jobs are replanned.

    \b
    Examples:
      rota queue set default --order fairshare --backfill easy
      rota queue set default --walltime 2h --max-wait 3d
    """
    return _write(call, name, options, new=False)


@queue.command("remove")
@click.argument("name", metavar="NAME")
def remove_queue(call: Invocation, name: str) -> int:
    """Remove a queue that no job waits or runs in. The built-in ones stay.

    \b
    Examples:
      rota queue remove night
    """
    from rota.cli.commands.site import site_records
    from rota.errors import BadInput
    from rota.plan.policy.policy import DEFAULT_QUEUES

    if name in DEFAULT_QUEUES:
        raise BadInput(f"queue '{name}' is built in", hint=f"change it with 'rota queue set {name}'")

    def make(site: SiteView) -> tuple[list[SiteChange], None]:
        _known(name, site)
        return [("queue", name, None)], None

    with call.connect() as client:
        site_records.change(client, ("queue",), make, about=f"queue remove {name}")
    return site_records.tell(call, f"removed: {name}", removed=name)


@queue.command("close")
@click.argument("name", metavar="NAME")
@click.option("--reason", metavar="TEXT", default="", help="Reason, shown when a job is refused.")
def close_queue(call: Invocation, name: str, reason: str) -> int:
    """Close a queue to new jobs. Its waiting and running jobs are not affected.

    \b
    Examples:
      rota queue close night --reason 'until the new disks are there'
    """
    return _open_or_close(call, name, reason.strip())


@queue.command("open")
@click.argument("name", metavar="NAME")
def open_queue(call: Invocation, name: str) -> int:
    """Open a closed queue to new jobs again.

    \b
    Examples:
      rota queue open night
    """
    return _open_or_close(call, name, None)


def _open_or_close(call: Invocation, name: str, reason: str | None) -> int:
    from rota.cli.commands.site import site_records
    from rota.core.site.policy import queues_of
    from rota.plan.policy.policy_records import opened_or_closed, read_queue

    def make(site: SiteView) -> tuple[list[SiteChange], tuple[Queue, bool]]:
        _known(name, site)
        old = site.of("queue").get(name)
        record = opened_or_closed(name, old, reason)
        changes: list[SiteChange] = [] if record == old else [("queue", name, record)]
        return changes, (read_queue(name, record or {}), queues_of(site.site())[name].closed)

    with call.connect() as client:
        word = "open" if reason is None else "close"
        made, was = site_records.change(client, ("queue",), make, about=f"queue {word} {name}")
    said = f"{name}: {_state(made)}"
    if made.closed == was and not reason:
        said = f"{name} was {'closed' if was else 'open'} already"
    return site_records.tell(call, said, queue=_body(name, made))


def _write(call: Invocation, name: str, options: dict[str, Any], *, new: bool) -> int:
    from rota.cli.commands.site import site_records
    from rota.errors import BadInput
    from rota.plan.policy.policy_records import read_queue

    given, shares = _given(options), _shares(options["shares"])
    if not new and not given and not shares:
        raise BadInput("say what to change", hint="give an option such as --priority 3")

    def make(site: SiteView) -> tuple[list[SiteChange], Queue]:
        if new:
            _refuse_known(name, site)
        else:
            _known(name, site)
        record = {**site.of("queue").get(name, {}), **given}
        if shares:
            all_shares = {**record.get("shares", {}), **shares}
            record["shares"] = {who: share for who, share in all_shares.items() if share is not None}
        record = {field: value for field, value in record.items() if value is not None}
        return [("queue", name, record)], read_queue(name, record)

    with call.connect() as client:
        made = site_records.change(client, ("queue",), make, about=f"queue {'add' if new else 'set'} {name}")
    if shares and made.order == "fifo" and made.shares:
        print_err(
            f"rota: note: the order of queue '{name}' is fifo, where shares do not count; see --order fairshare"
        )
    return site_records.tell(call, f"{name}: {_sentence(made)}", queue=_body(name, made))


def _known(name: str, site: SiteView) -> None:
    """Raises `NotFound`."""
    from difflib import get_close_matches

    from rota.core.site.policy import queues_of
    from rota.errors import NotFound

    found = queues_of(site.site())
    if name not in found:
        close = get_close_matches(name, found, n=1)
        hint = f"did you mean '{close[0]}'?" if close else "list them with 'rota queue list'"
        raise NotFound(f"there is no queue '{name}'", hint=hint)


def _refuse_known(name: str, site: SiteView) -> None:
    from rota.core.site.policy import queues_of
    from rota.errors import BadInput

    if name in queues_of(site.site()):
        raise BadInput(f"there is a queue '{name}' already", hint=f"change it with 'rota queue set {name}'")


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The given options as fields of the record; None restores a default. Raises `BadInput`."""
    from rota.errors import BadInput
    from rota.units import parse_duration

    found: dict[str, Any] = {}
    if (who := options["who"]) is not None:
        if who not in ("all", "admins", _NONE):
            raise BadInput(f"--for: '{who[:40]}' is neither", hint="use all or admins")
        found["admins_only"] = None if who == _NONE else who == "admins"
    for name in ("priority", "order", "backfill", "walltime", "max_wait", "max_priority"):
        text = options[name]
        if text is None:
            continue
        if text == _NONE and name != "backfill":
            found[f"{name}_s" if name in ("walltime", "max_wait") else name] = None
        elif name in ("walltime", "max_wait"):
            try:
                found[f"{name}_s"] = parse_duration(text)
            except BadInput as error:
                raise error.at(field=name, label=f"--{name.replace('_', '-')}") from None
        elif name in ("priority", "max_priority"):
            if not (text.isascii() and text.isdigit() and len(text) < 5):
                most, option = (1000, "--priority") if name == "priority" else (255, "--max-priority")
                raise BadInput(f"{option}: '{text[:40]}' is not a whole number", hint=f"give one from 0 to {most}")
            found[name] = int(text)
        else:
            found[name] = text
    return found


def _shares(words: tuple[str, ...]) -> dict[str, float | None]:
    from rota.errors import BadInput

    found: dict[str, float | None] = {}
    for word in words:
        who, equals, share = word.rpartition("=")
        try:
            value = None if share == _NONE else float(share)
        except ValueError:
            value = -1.0
        if not equals or not who or (value is not None and not 0 <= value <= 1):  # NaN is not
            raise BadInput(
                f"--share: '{word[:60]}' is not WHO=SHARE", hint="write it like alice=0.5 or project:x=0.2"
            )
        found[who] = value
    return found


# ------------------------------------------------------------------ showing


def _body(name: str, each: Queue) -> dict[str, Any]:
    import msgspec

    from rota.plan.policy.policy import DEFAULT_QUEUES

    return {"name": name, **msgspec.to_builtins(each), "built_in": name in DEFAULT_QUEUES}


def _row(name: str, each: Queue) -> list[str]:
    from rota.units import format_duration

    walltime = "none" if each.walltime_s is None else format_duration(each.walltime_s)
    wait = format_duration(each.max_wait_s)
    who = "admins" if each.admins_only else "all"
    most = "any" if each.max_priority is None else f"up to {each.max_priority}"
    words = [name, str(each.priority), each.order, each.backfill, walltime, wait, who, most]
    return [*words, _state(each), _share_words(each)]


def _note(each: Queue) -> str:
    """What has no room beside the first columns."""
    words = ["for admins" if each.admins_only else "for all"]
    words += [f"priority of jobs at most {each.max_priority}"] if each.max_priority is not None else []
    words.append(_state(each))
    return ", ".join([*words, *([f"shares {_share_words(each)}"] if each.shares else [])])


def _state(each: Queue) -> str:
    from rota.cli.render.text import harmless

    if not each.closed:
        return "open"
    return f"closed: {harmless(each.closed_reason)}" if each.closed_reason else "closed"


def _share_words(each: Queue) -> str:
    return " ".join(f"{who}={share:g}" for who, share in sorted(each.shares.items()))


def _sentence(each: Queue) -> str:
    _name, priority, order, backfill, walltime, wait, _who, _most, state, shares = _row("", each)
    words = [f"priority {priority}", order, f"backfill {backfill}"]
    words += [f"walltime {walltime}"] if each.walltime_s is not None else []
    words += ["for admins"] if each.admins_only else []
    words += [f"priority of jobs at most {each.max_priority}"] if each.max_priority is not None else []
    words += [f"at most {wait} of waiting", *([state] if each.closed else [])]
    return ", ".join([*words, *([f"shares {shares}"] if shares else [])])
