"""`rota rule test`: what the rules would make of a job. Nothing is submitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.job_options import given, options_for

if TYPE_CHECKING:
    from rota.core.job import Spec
    from rota.plan.rules import Verdict

#: Options of `add` that rules may look at or change.
_FIELDS: Final = frozenset(
    {"name", "group", "project", "queue", "priority", "cpus", "mem", "disk", "time", "gpus", "walltime", "retries"}
    | {"request", "where", "type", "at"}
)
#: Fields that a rule may change, as they are shown.
_SHOWN: Final = (
    *(
        "queue",
        "project",
        "name",
        "type",
        "walltime",
        "priority",
        "cpus",
        "mem",
        "disk",
        "time",
        "gpus",
        "retries",
    ),
)


@command("test")
@options_for(_FIELDS)
@click.option("--user", metavar="NAME", help="Whose job it would be (default: yours).")
@click.option("--interactive", is_flag=True, help="As with 'rota run -I'.")
@click.option("--system", is_flag=True, help="As in a deployment that runs jobs of many users.")
@click.option(
    "--reservations", metavar="N", type=click.IntRange(1, 1_000_000), default=1, show_default=True,
    help="With --at: how many reservations of the user would wait, this one included.",
)  # fmt: skip
def test_rules(
    call: Invocation, user: str | None, interactive: bool, system: bool, reservations: int, **options: Any
) -> int:
    """Say which rules match a job, and what it would become or why it would be refused.

    The options are those of 'rota add'. Nothing is submitted. The exit status is 0 if the job would be taken in
    and 2 if it would be refused.

    \b
    Examples:
      rota rule test -q besteffort --walltime 3d --user bob
      rota rule test -l nodes=4
    """
    from rota.errors import BadInput
    from rota.manager.admission import Rulebook, refuse, respecified
    from rota.manager.terms import agreed

    fields = given(options)
    with call.connect() as client:
        records = client.site("rule", "queue", "setting", "property").site()
    spec = agreed(_spec(fields, user or _me()))
    _check_words(spec, records)
    book = Rulebook(records, system=system)
    verdict = book.judge(spec, interactive=interactive, reservations=reservations)
    error = ""
    try:
        refuse(verdict)
        book.check_queue(agreed(respecified(spec, verdict.facts)))
    except BadInput as refused:
        error = str(refused) if not verdict.rejected_by else verdict.message
    if call.json:
        _print_json(spec, verdict, error)
    elif not call.quiet:
        _print(verdict, error, request=spec.request)
    return BadInput.exit_status if error else 0


def _check_words(spec: Spec, records: dict[str, dict[str, Any]]) -> None:
    """Raise `BadInput` for levels and properties that the site has not."""
    from rota.errors import BadInput
    from rota.plan import expression
    from rota.plan.grammar import check_alternative, parse_request
    from rota.plan.records import kinds_of, levels_of

    kinds, levels = kinds_of(records), levels_of(records)
    field = "request"
    try:
        for written in spec.request:
            check_alternative(parse_request(written), written, levels=levels, kinds=kinds)
        field = "where"
        if spec.where:
            expression.check(expression.parse(spec.where), kinds)
    except BadInput as error:
        raise BadInput(f"field '{field}': {error.message}", hint=error.hint) from None


def _me() -> str:
    import os

    from rota.manager.peer import user_name

    return user_name(os.getuid())


def _spec(fields: dict[str, object], user: str) -> Spec:
    from rota.client.new_spec import new_spec
    from rota.client.submission import base_wanted
    from rota.manager.specs import spec_from

    return spec_from(new_spec(base_wanted(fields, text=True), 0), (), user=user, env=0)


def _job(spec: Spec) -> dict[str, Any]:
    """What a job of it would have, as JSON has it of jobs."""
    import msgspec

    from rota.manager.rows import size_view

    return {
        "user": spec.user,
        "queue": spec.queue,
        "project": spec.project,
        "name": spec.name,
        "type": list(spec.types),
        "priority": spec.priority,
        "walltime_s": spec.walltime_s,
        "request": list(spec.request) or None,
        "size": msgspec.to_builtins(size_view(spec.size)),
        "retries": spec.retries,
    }


def _print_json(spec: Spec, verdict: Verdict, error: str) -> None:
    from rota.manager.admission import respecified
    from rota.plan.rule_form import shown_value

    print_json(
        {
            "admitted": not error,
            "rejected_by": verdict.rejected_by or None,
            "message": error or None,
            "matched": list(verdict.matched),
            "changes": [
                {
                    "rule": step.rule,
                    "action": step.does,
                    "field": step.field,
                    "from": shown_value(step.field, step.old),
                    "to": shown_value(step.field, step.new),
                }
                for step in verdict.steps
            ],
            "job": _job(respecified(spec, verdict.facts)),
        }
    )


def _print(verdict: Verdict, error: str, *, request: tuple[str, ...]) -> None:
    from rota.cli.terminal import harmless
    from rota.plan.rule_form import words_of

    for name in verdict.matched:
        if name == verdict.rejected_by:
            said = "rejects it"
        else:
            done = [step for step in verdict.steps if step.rule == name]
            said = (
                ", ".join(f"{step.does} {words_of({step.field: step.new})}" for step in done) or "changes nothing"
            )
        print(f"rule {harmless(name)}: {harmless(said)}")
    if error:
        by = f" (rule '{verdict.rejected_by}')" if verdict.rejected_by else ""
        print(f"refused: {harmless(error)}{by}")
        return
    values = {name: getattr(verdict.facts, name) for name in _SHOWN}
    if request:  # it says how many
        values["cpus"] = values["gpus"] = None
    shown = {name: value for name, value in values.items() if value not in ("", (), None, 0)}
    print(f"admitted: {harmless(words_of(shown))}")
