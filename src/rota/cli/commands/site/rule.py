"""`rota rule`: the admission rules of the site, in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rota.cli.command import Group, Invocation, print_json
from rota.cli.commands.site.rule_test import test_rules
from rota.cli.input.selectors import files

if TYPE_CHECKING:
    from rota.client.calls import SiteChange
    from rota.core.admission.admission_rules import AdmissionRule
    from rota.core.admission.rule_records import RankedRule
    from rota.wire.views import SiteView

F = TypeVar("F", bound=Callable[..., Any])


@click.group("rule", cls=Group)
def rule() -> None:
    """Admission rules: how the site changes or rejects jobs when they are submitted.

    Rules are tried in order. Each matches jobs (by user, unix_group, queue, project, group, name, type, uses,
    where, interactive, reservation, admin, walltime_over, cpus_over, mem_over…) and then does one thing: default
    fills in a missing value, cap limits a value, set overrides it, reject refuses the job with a message."""


rule.add_command(test_rules)


def _parts(function: F) -> F:
    for option in reversed(
        (
            click.option(
                "--match", metavar="FIELD=VALUE", multiple=True,
                help="Only jobs with this; all must hold. A value may have * and begin with ! (not); several of "
                "one field, repeated or with commas, mean any of them. 'any': every job.",
            ),
            click.option("--default", metavar="FIELD=VALUE", multiple=True, help="Fill in a missing value."),
            click.option("--cap", metavar="FIELD=VALUE", multiple=True, help="Limit a value to at most this."),
            click.option("--set", metavar="FIELD=VALUE", multiple=True, help="Override a value."),
            click.option("--reject", metavar="TEXT", help="Refuse the job, and say why."),
            click.option(
                "--file", metavar="FILE", shell_complete=files,
                help="Read the rule from a JSON file, or '-' for stdin.",
            ),
        )
    ):  # fmt: skip
        function = option(function)
    return function


@rule.command("list")
def list_rules(call: Invocation) -> int:
    """List the rules in the order in which they are tried.

    \b
    Examples:
      rota rule list
    """
    from rota.cli.commands.site import site_records
    from rota.core.admission.rule_records import placed_rules
    from rota.core.admission.rule_syntax import words_of

    with call.connect_to_read() as client:
        found = placed_rules(client.site("rule").site())
    rows = []
    for place, each in enumerate(found, 1):
        made = each.rule
        does = f"reject: {made.message}" if made.does == "reject" else f"{made.does} {words_of(made.values)}"
        rows.append([made.name, str(place), words_of(made.match) or "any", does, "yes" if each.built_in else ""])
    return site_records.show(
        call,
        {"rules": [_body(each, place) for place, each in enumerate(found, 1)]},
        head=["RULE", "PLACE", "MATCH", "THEN", "BUILT IN"],
        rows=rows,
        empty="no rules; every job is taken in as it is",
        right="lr",
    )


@rule.command("show")
@click.argument("name", metavar="NAME")
def show_rule(call: Invocation, name: str) -> int:
    """Print a rule as JSON, in the form that --file reads.

    \b
    Examples:
      rota rule show nodes-walltime > rule.json
    """

    with call.connect_to_read() as client:
        place, each = _find(name, client.site("rule"))
    body = _body(each, place)
    print_json(body if call.json else {key: body[key] for key in body if key not in ("position", "built_in")})
    return 0


@rule.command("add")
@click.argument("name", metavar="NAME", required=False)
@_parts
@click.option(
    "--position", metavar="N", type=click.IntRange(1, 100_000), help="Place in the order (default: last)."
)
def add_rule(call: Invocation, name: str | None, position: int | None, **options: Any) -> int:
    """Add a rule. It applies to jobs that are added from now on.

    \b
    Examples:
      rota rule add short --match queue=besteffort --match user=bob --cap walltime=12h --position 3
      rota rule add project --match project= --reject 'say for which project: --project NAME'
      rota rule add gpus --match queue=gpu --set where="gpu = yes"
      rota rule add --file rule.json
    """
    from rota.cli.commands.site import site_records
    from rota.core.admission.rule_records import placed_rules
    from rota.core.admission.rule_syntax import read_rule
    from rota.errors import BadInput

    made = read_rule(_written(name, options), name=name or "")

    def make(site: SiteView) -> tuple[list[SiteChange], int]:
        found = placed_rules(site.site())
        if any(each.rule.name == made.name for each in found):
            raise BadInput(
                f"there is a rule '{made.name}' already", hint=f"change it with 'rota rule set {made.name}'"
            )
        return inserted(made, found, position)

    with call.connect() as client:
        place = site_records.change(client, ("rule",), make, about=f"rule add {made.name}")
    return site_records.tell(call, f"{made.name}: rule {place}", rule=made.name, position=place)


@rule.command("set")
@click.argument("name", metavar="NAME")
@_parts
def set_rule(call: Invocation, name: str, **options: Any) -> int:
    """Change a rule, which keeps its place. New conditions replace all old ones, and so do new actions.

    \b
    Examples:
      rota rule set nodes-walltime --default walltime=1h
      rota rule set short --match any
    """
    from rota.cli.commands.site import site_records
    from rota.core.admission.rule_records import ranked_rule_record
    from rota.core.admission.rule_syntax import ACTIONS, read_rule, write_rule
    from rota.errors import BadInput

    given = _written(name, options)
    if given.keys() <= {"name"}:
        raise BadInput("say what to change", hint="give --match, --default, --cap, --set, --reject or --file")

    def make(site: SiteView) -> tuple[list[SiteChange], None]:
        _place, each = _find(name, site)
        before = write_rule(each.rule)
        if options["file"]:
            before = {}
        elif any(action in given for action in ACTIONS):
            before = {key: value for key, value in before.items() if key not in ACTIONS}
        made = read_rule({**before, **given}, name=name)
        if made.name != name:
            raise BadInput(f"the file has a rule '{made.name}'", hint=f"call it '{name}', or leave out its name")
        return [("rule", name, ranked_rule_record(made, each.rank))], None

    with call.connect() as client:
        site_records.change(client, ("rule",), make, about=f"rule set {name}")
    return site_records.tell(call, f"{name}: changed", rule=name)


@rule.command("remove")
@click.argument("name", metavar="NAME")
def remove_rule(call: Invocation, name: str) -> int:
    """Remove a rule, also one that is built in; 'rota rule reset' brings that back.

    \b
    Examples:
      rota rule remove short
    """
    from rota.cli.commands.site import site_records
    from rota.core.admission.rule_records import BUILT_IN_RULES, REMOVED

    def make(site: SiteView) -> tuple[list[SiteChange], None]:
        _find(name, site)
        return [("rule", name, REMOVED if name in BUILT_IN_RULES else None)], None

    with call.connect() as client:
        site_records.change(client, ("rule",), make, about=f"rule remove {name}")
    return site_records.tell(call, f"removed: {name}", removed=name)


@rule.command("reset")
@click.argument("name", metavar="NAME")
def reset_rule(call: Invocation, name: str) -> int:
    """Restore a built-in rule, in its original place.

    \b
    Examples:
      rota rule reset default-queue
    """
    from rota.cli.commands.site import site_records
    from rota.core.admission.rule_records import BUILT_IN_RULES
    from rota.errors import NotFound

    if name not in BUILT_IN_RULES:
        raise NotFound(f"there is no built-in rule '{name}'", hint=f"there are {', '.join(BUILT_IN_RULES)}")

    def make(site: SiteView) -> tuple[list[SiteChange], None]:
        return ([("rule", name, None)] if name in site.of("rule") else []), None

    with call.connect() as client:
        site_records.change(client, ("rule",), make, about=f"rule reset {name}")
    return site_records.tell(call, f"{name}: as it was", rule=name)


@rule.command("move")
@click.argument("name", metavar="NAME")
@click.argument("position", metavar="POSITION", type=click.IntRange(1, 100_000))
def move_rule(call: Invocation, name: str, position: int) -> int:
    """Give a rule another place in the order; the first one is 1.

    \b
    Examples:
      rota rule move short 1
    """
    from rota.cli.commands.site import site_records
    from rota.core.admission.rule_records import placed_rules

    def make(site: SiteView) -> tuple[list[SiteChange], int]:
        place, each = _find(name, site)
        others = [one for one in placed_rules(site.site()) if one.rule.name != name]
        if place == min(position, len(others) + 1):
            return [], place
        return inserted(each.rule, others, position)

    with call.connect() as client:
        place = site_records.change(client, ("rule",), make, about=f"rule move {name}")
    return site_records.tell(call, f"{name}: rule {place}", rule=name, position=place)


# ------------------------------------------------------------------ reading and placing


def _written(name: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """The rule, or the parts of one, that the options give. Raises `BadInput`."""
    from rota.core.admission.rule_syntax import ACTIONS, from_words
    from rota.errors import BadInput

    words = {key: options[key] for key in ("match", *ACTIONS) if options[key]}
    if options["file"] is not None:
        if words:
            raise BadInput(f"--file and --{next(iter(words))} contradict each other", hint="give one of them")
        body = _from_file(options["file"])
        if name is not None and body.setdefault("name", name) != name:
            raise BadInput(
                f"the file has a rule '{str(body['name'])[:60]}'", hint="leave out the name, here or there"
            )
        return body
    if name is None:
        raise BadInput("say how the rule is called", hint="give a name, or --file with a rule that has one")
    made: dict[str, Any] = {"name": name}
    for key, value in words.items():
        made[key] = (
            value if key == "reject" else from_words((() if value == ("any",) else value), option=f"--{key}")
        )
    return made


def _from_file(path: str) -> dict[str, Any]:
    import msgspec

    from rota.client.submission import read_file, read_stdin
    from rota.errors import BadInput

    data = b"".join(read_stdin() if path == "-" else read_file(path))
    try:
        body = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise BadInput(
            f"--file: it is not valid JSON: {error}", hint="see 'rota rule show default-queue'"
        ) from None
    if not isinstance(body, dict):
        raise BadInput("--file: it is not a JSON object", hint="see 'rota rule show default-queue'")
    return body


def _find(name: str, site: SiteView) -> tuple[int, RankedRule]:
    """The rule and its place. Raises `NotFound`."""
    from difflib import get_close_matches

    from rota.core.admission.rule_records import placed_rules
    from rota.errors import NotFound

    found = placed_rules(site.site())
    for place, each in enumerate(found, 1):
        if each.rule.name == name:
            return place, each
    close = get_close_matches(name, [each.rule.name for each in found], n=1)
    hint = f"did you mean '{close[0]}'?" if close else "list them with 'rota rule list'"
    raise NotFound(f"there is no rule '{name}'", hint=hint)


def inserted(made: AdmissionRule, others: list[RankedRule], position: int | None) -> tuple[list[SiteChange], int]:
    """The records that insert a rule at a position, and that position."""
    from rota.core.admission.rule_records import STEP, ranked_rule_record

    at = len(others) if position is None else min(position - 1, len(others))
    low = others[at - 1].rank if at else (others[0].rank - 2 * STEP if others else 0.0)
    high = others[at].rank if at < len(others) else low + 2 * STEP
    rank = (low + high) / 2
    if low < rank < high:
        return [("rule", made.name, ranked_rule_record(made, rank))], at + 1
    # No rank is left between the two, so all rules get new ranks.
    order = [each.rule for each in others]
    order.insert(at, made)
    return [
        ("rule", each.name, ranked_rule_record(each, STEP * place)) for place, each in enumerate(order, 1)
    ], at + 1


def _body(each: RankedRule, place: int) -> dict[str, Any]:
    from rota.core.admission.rule_syntax import write_rule

    return {**write_rule(each.rule), "position": place, "built_in": each.built_in}
