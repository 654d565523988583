"""Shell completion: the values that a shell offers for options and arguments. It never fails and never hangs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from rota.client import Client

#: How long a prompt may wait for the manager.
TIMEOUT_S: Final = 0.5

#: Asks the manager; a name that it answers with is offered.
Ask = Callable[["Client"], list[str]]

#: Parameters whose values are paths.
_PATHS: Final = {
    "array_file": "file",
    "cwd": "dir",
    "home": "dir",
    "input_file": "file",
    "job_key": "file",
    "python": "file",
    "stderr": "file",
    "stdout": "file",
}


def completions(
    context: click.Context, parameter: click.Parameter, incomplete: str, *, connect: Callable[[], Client]
) -> list[CompletionItem[Any]]:
    """The values of a parameter that begin with what was typed; of a `NAME:N` only the name."""
    name = parameter.name or ""
    group = context.parent.command.name if context.parent is not None else ""
    if name in _PATHS or (name == "file" and group == "pipeline"):
        return [CompletionItem(incomplete, type=_PATHS.get(name, "file"))]
    words: Iterable[str] = ()
    if name == "override":
        words = ("no", "higher", "always")
    elif name == "retry_on":
        from rota.plan.language.retry_codes import DEFAULT, RETRY_CODES

        words = (*RETRY_CODES, DEFAULT)
    elif name in ("order", "backfill"):
        from rota.plan.policy.policy import BACKFILLS, ORDERS

        words = ORDERS if name == "order" else BACKFILLS
    elif name == "queue" or (name == "name" and group == "queue"):
        words = from_manager(connect, _queues)
    elif name == "name" and group == "rule" and context.command.name != "test":
        words = from_manager(connect, _rules)
    elif group == "quota" and name in ("rule", "name"):
        words = from_manager(connect, _quota_rules if name == "rule" else _sets)
    elif name == "pool" or (name == "name" and group == "pool"):
        words = from_manager(connect, lambda client: [each.name for each in client.pools().pools])
    elif name == "limits":
        words = from_manager(connect, lambda client: [limit.name for limit in client.limits()])
    elif name == "learn" or (name == "name" and context.command.name == "learn"):
        words = from_manager(connect, lambda client: [group.name for group in client.learned()])
    elif group == "pipeline" and name in ("elements", "only", "stages"):
        # Behind an option that lacks its value, click has not come to the arguments.
        file = context.params.get("file") or next(iter(context.args), "")
        return [CompletionItem(word) for word in _of_pipeline(file, name, incomplete)]
    elif context.command.name == "usage" and name in ("hosts", "by"):
        words = from_manager(connect, _hosts) if name == "hosts" else _usage_keys(connect)
    elif (asked := _OF_SITE.get(f"{group} {name}")) is not None:
        words = from_manager(connect, asked)
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def _of_pipeline(file: str, name: str, incomplete: str) -> list[str]:
    """Elements, or stages behind a comma, that the file on the command line has."""
    from rota.pipeline.yaml_file import load

    try:
        definition = load(file)
    except Exception:  # an error in the middle of a prompt would only be in the way
        return []
    if name != "stages":
        return [each.name for each in definition.elements if each.name.startswith(incomplete)]
    before, comma, begun = incomplete.rpartition(",")
    given = before.split(",")
    return [
        before + comma + stage.name
        for stage in definition.stages
        if stage.name.startswith(begun) and stage.name not in given
    ]


def _queues(client: Client) -> list[str]:
    from rota.core.site.policy import queues_of

    return list(queues_of(client.site("queue").site()))


def _rules(client: Client) -> list[str]:
    from rota.core.admission.rule_records import rules_of

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


def _usage_keys(connect: Callable[[], Client]) -> list[str]:
    from rota.plan.site.records import BUILT_IN, PLACE

    built_in = [name for name in BUILT_IN if name not in PLACE]
    return ["host", "group", *built_in, *from_manager(connect, _properties)]


def _levels(client: Client) -> list[str]:
    from rota.plan.site.records import levels_of

    return list(levels_of(client.site("setting").site()))


#: "GROUP PARAMETER": where the values come from records of the site.
_OF_SITE: Final[dict[str, Ask]] = {
    "resource hosts": _hosts,
    "resource values": _properties,
    "property name": _properties,
    "property above": _levels,
}


def from_manager(connect: Callable[[], Client], ask: Ask) -> list[str]:
    """What the manager answers; nothing if it does not, or not in time."""
    try:
        with connect() as client:
            # A shell prints its completions on the terminal: names with control characters are left out.
            return [word for word in ask(client) if word.isprintable()]
    except Exception:  # an error in the middle of a prompt would only be in the way
        return []
