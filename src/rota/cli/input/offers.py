"""The words that a shell is offered for the values of options and arguments; never an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from rota.cli.command import invocation

if TYPE_CHECKING:
    from rota.client import Client

#: A prompt must not hang.
_PATIENCE_S: Final = 0.5

#: Parameters whose values are names of files or directories.
_PATHS: Final = {
    "array_file": "file",
    "cwd": "dir",
    "home": "dir",
    "input_file": "file",
    "job_key": "file",
    "stderr": "file",
    "stdout": "file",
}


def offers(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[Any]]:
    """What there is for this parameter; of a `NAME:N` the name."""
    name = parameter.name or ""
    if name in _PATHS:
        return [CompletionItem(incomplete, type=_PATHS[name])]
    words: Iterable[str] = ()
    group = context.parent.command.name if context.parent is not None else ""
    if name == "override":
        words = ("no", "higher", "always")
    elif name == "retry_on":
        from rota.plan.language.retry_codes import DEFAULT, RETRY_CODES

        words = (*RETRY_CODES, DEFAULT)
    elif name in ("order", "backfill"):
        from rota.plan.policy.policy import BACKFILLS, ORDERS

        words = ORDERS if name == "order" else BACKFILLS
    elif name == "queue" or (name == "name" and group == "queue"):
        words = from_manager(context, _queues)
    elif name == "name" and group == "rule" and context.command.name != "test":
        words = from_manager(context, _rules)
    elif group == "quota" and name in ("rule", "name"):
        words = from_manager(context, _quota_rules if name == "rule" else _sets)
    elif name == "limits":
        words = from_manager(context, lambda client: [limit.name for limit in client.limits()])
    elif name == "learn" or (name == "name" and context.command.name == "learn"):
        words = from_manager(context, lambda client: [group.name for group in client.learned()])
    elif (asked := _OF_SITE.get(f"{group} {name}")) is not None:
        words = from_manager(context, asked)
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def _queues(client: Client) -> list[str]:
    from rota.core.site.policy import queues_of

    return list(queues_of(client.site("queue").site()))


def _rules(client: Client) -> list[str]:
    from rota.core.site.policy import rules_of

    return [rule.name for rule in rules_of(client.site("rule").site())]


def _quota_rules(client: Client) -> list[str]:
    return [value["rule"] for value in client.site("quota").of("quota").values()]


def _sets(client: Client) -> list[str]:
    values = [*client.site("quota").of("quota").values(), *client.site("calendar").of("calendar").values()]
    return sorted({value["set"] for value in values if value.get("set")})


def _hosts(client: Client) -> list[str]:
    site = client.site("host")
    return sorted({*site.of("host"), *site.hosts})


def _properties(client: Client) -> list[str]:
    return sorted(client.site("property").of("property"))


def _levels(client: Client) -> list[str]:
    from rota.plan.site.records import levels_of

    return list(levels_of(client.site("setting").site()))


#: Nouns with parameters whose values are about the site.
_OF_SITE: Final[dict[str, Callable[[Client], list[str]]]] = {
    "resource hosts": _hosts,
    "resource values": _properties,
    "property name": _properties,
    "property above": _levels,
}


def from_manager(context: click.Context, ask: Callable[[Client], list[str]]) -> list[str]:
    """What a manager that answers at once says; else nothing."""
    from rota.client import connect

    given = invocation(context)
    try:
        with connect(given.home.path, address=given.address, timeout=_PATIENCE_S) as client:
            # What a shell prints goes to the terminal; a name with control characters is not offered.
            return [word for word in ask(client) if word.isprintable()]
    except Exception:  # whatever it is, a prompt is no place to tell it
        return []
