"""What commands about the site share: read its records, change them atomically, print the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from rota.cli.command import print_json
from rota.cli.render.printing import print_out
from rota.errors import BadInput, NotFound

if TYPE_CHECKING:
    from rota.cli.command import Invocation
    from rota.client.blocking import Client
    from rota.client.calls import SiteChange
    from rota.wire.views import SiteView

T = TypeVar("T")

#: Concurrent changes can win a few times; more often, something else is wrong.
_TRIES = 10


def change(
    client: Client, kinds: tuple[str, ...], make: Callable[[SiteView], tuple[list[SiteChange], T]], *, about: str
) -> T:
    """Change the site by compare-and-swap, and try again if another change came first.

    `make` gets the records of these kinds and returns the changes and the result of this call.
    """
    for _ in range(_TRIES):
        site = client.site(*kinds)
        changes, result = make(site)
        if not changes:
            return result  # nothing to change
        try:
            client.set_site(changes, about=about, base=site.version)
        except BadInput as error:
            if error.code != "changed":
                raise
        else:
            return result
    raise BadInput("the site keeps changing", hint="try again", code="changed")


def records(client: Client, kind: str, name: str | None = None) -> dict[str, Any]:
    """The records of a kind, or the one with this name. Raises `NotFound`."""
    found = client.site(kind).of(kind)
    if name is None:
        return dict(sorted(found.items()))
    if name not in found:
        from difflib import get_close_matches

        close = get_close_matches(name, found, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"list them with 'rota {kind} list'"
        raise NotFound(f"there is no {kind} '{name}'", hint=hint)
    return {name: found[name]}


def tell(call: Invocation, sentence: str, **result: Any) -> int:
    """Print what was done: a sentence; with --json the result; with --quiet nothing."""
    if call.json:
        print_json(result)
    elif not call.quiet:
        print_out(sentence)
    return 0


def show(
    call: Invocation,
    value: Any,
    *,
    head: list[str],
    rows: list[list[str]],
    empty: str,
    right: str = "",
    kept: int = 0,
    notes: list[str] | None = None,
) -> int:
    """Print a list: with --json the value, with --quiet the first column, else a table.

    Where it does not fit, `notes` go below the first `kept` columns.
    """
    from rota.cli.render.fitted_table import fitted
    from rota.cli.render.text import table

    if call.json:
        print_json(value)
    elif call.quiet:
        print_out(*(row[0] for row in rows))
    elif rows and notes is not None:
        print_out(fitted(head, rows, right=right, kept=kept, notes=notes))
    elif rows:
        print_out(table(head, rows, right=right))
    else:
        print_out(empty)
    return 0
