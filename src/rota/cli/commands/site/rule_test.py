"""`rota rule test`: apply the admission rules to a job without submitting it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.input.job_options import given, options_for
from rota.cli.render.printing import print_out

if TYPE_CHECKING:
    from rota.client.rule_trial import RuleTrial

#: Options of `add` that rules may look at or change.
_FIELDS: Final = frozenset(
    {"name", "group", "project", "queue", "priority", "cpus", "mem", "disk", "time", "gpus", "walltime", "retries"}
    | {"retry_on"}
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
        "retry_on",
        "where",
    ),
)


@command("test")
@options_for(_FIELDS)
@click.option("--user", metavar="NAME", help="Whose job it would be (default: yours).")
@click.option(
    "--unix-group", "unix_groups", metavar="NAME", multiple=True,
    help="A Unix group of that user; repeat it (default: those that this host knows).",
)  # fmt: skip
@click.option("--admin", is_flag=True, help="Test as an administrator.")
@click.option("--interactive", is_flag=True, help="Test as for 'rota run -I'.")
@click.option("--system", is_flag=True, help="Test as in a deployment that runs jobs of many users.")
@click.option(
    "--reservations", metavar="N", type=click.IntRange(1, 1_000_000), default=1, show_default=True,
    help="With --at: how many reservations of the user would wait, this one included.",
)  # fmt: skip
def test_rules(
    call: Invocation,
    user: str | None,
    unix_groups: tuple[str, ...],
    admin: bool,
    interactive: bool,
    system: bool,
    reservations: int,
    **options: Any,
) -> int:
    """Show which rules match a job, and what it would become or why it would be refused.

    The options are those of 'rota add'. Nothing is submitted. The exit status is 0 if the job would be admitted
    and 2 if it would be refused.

    \b
    Examples:
      rota rule test -q besteffort --walltime 3d --user bob
      rota rule test -l nodes=4
      rota rule test -q gpu --unix-group students
    """
    from rota.client.rule_trial import KINDS, try_rules
    from rota.errors import BadInput

    fields = given(options)
    with call.connect_to_read() as client:
        records = client.site(*KINDS).site()
    tried = try_rules(
        records,
        fields,
        user=user or _me(),
        interactive=interactive,
        system=system,
        reservations=reservations,
        admin=admin,
        unix_groups=unix_groups or None,
    )
    if call.json:
        print_json(tried.view())
    elif not call.quiet:
        _print(tried)
    return BadInput.exit_status if tried.error else 0


def _me() -> str:
    import os

    from rota.users import user_name

    return user_name(os.getuid())


def _print(tried: RuleTrial) -> None:
    from rota.cli.render.text import harmless
    from rota.core.admission.rule_facts import facts_of
    from rota.core.admission.rule_syntax import words_of

    verdict, spec = tried.verdict, tried.spec
    for name in verdict.matched:
        if name == verdict.rejected_by:
            said = "rejects it"
        else:
            done = [step for step in verdict.steps if step.rule == name]
            said = (
                ", ".join(f"{step.does} {words_of({step.field: step.new})}" for step in done) or "changes nothing"
            )
        print_out(f"rule {harmless(name)}: {harmless(said)}")
    if tried.error:
        by = f" (rule '{tried.rejected_by}')" if tried.rejected_by else ""
        print_out(f"refused: {harmless(tried.error)}{by}")
        return
    facts = facts_of(spec)
    values = {name: getattr(facts, name) for name in _SHOWN}
    if spec.request:  # it says how many
        values["cpus"] = values["gpus"] = None
    shown = {name: value for name, value in values.items() if value not in ("", (), None, 0)}
    print_out(f"admitted: {harmless(words_of(shown))}")
