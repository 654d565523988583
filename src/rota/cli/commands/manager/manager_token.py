"""`rota manager token`: make, list and remove the tokens of this deployment."""

from __future__ import annotations

import os

import click

from rota.cli.command import Group, Invocation, print_json
from rota.cli.render.printing import print_err, print_out


@click.group("token", cls=Group)
def token() -> None:
    """Make, list and remove tokens, which give access to the manager over TLS."""


@token.command("add")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["user", "admin", "runner"]),
    default="user",
    show_default=True,
    help="What its holder may do.",
)
@click.option("--expires", metavar="TIME", help="Lifetime of the token (default: unlimited).")
@click.option("--user", metavar="USER", help="User that jobs added with it belong to (default: you).")
@click.option("--host", metavar="HOST", help="With --role runner: valid only for the agent of this node.")
@click.option("--out", metavar="FILE", help="Write it to this new file, readable by you alone.")
def token_add(
    call: Invocation,
    name: str,
    role: str,
    expires: str | None,
    user: str | None,
    host: str | None,
    out: str | None,
) -> int:
    """Make a token and print it. It is shown only once.

    With --user, jobs are accounted to that user, but like all jobs they run as the Unix user of the agent on
    their node. They can read and change that user's files, including those of other people's jobs and, on the
    manager's host, the keys and tokens of this deployment. Give tokens only to people you trust with that.

    The token of a runner comes with the certificate by which an agent recognises this manager. Keep both together,
    in the file for 'rota node run --token'.

    \b
    Examples:
      rota manager token add alice --user alice --out alice.token
      rota manager token add ci --role user --expires 30d
      rota manager token add node7 --role runner --host node7 --out node7.token
    """
    from rota.plan.language.hostlist import check_name
    from rota.units import parse_duration
    from rota.wire.node_pass import compose

    if host is not None:
        check_name(host, "a node")  # also if it is empty: without one the token would be good for all of them
    seconds = None if expires is None else parse_duration(expires)
    with call.connect() as client:
        made = client.add_token(name, role, expires_s=seconds, host=host, user=user)
    text = compose(made.token, made.authority) if made.authority else f"{made.token}\n"
    if out is not None:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
    notice = _readable(user, call.home.path) if user is not None and role == "user" else None
    if call.json:
        body = {"name": made.name, "role": made.role, "token": None if out else made.token, "file": out}
        print_json({**body, "notice": notice})
    elif out is None:
        print_out(*text.splitlines())
    elif not call.quiet:
        used = f"rota node run --manager HOST:PORT --token {out}" if made.authority else f"ROTA_TOKEN_FILE={out}"
        print_out(f"written to {out}; use it with {used}")
    if notice is not None and not (call.json or call.quiet):
        print_err(f"rota: note: {notice}")
    return 0


def _readable(user: str, home: object) -> str:
    """What the holder of a user's token can read by running jobs."""
    return (
        f"jobs of {user} run as the user of the agent of their node, as everybody's do: they can read and change "
        f"that user's files, what other jobs leave there and, on the manager's host, {home} with tokens and keys"
    )


@token.command("list")
def token_list(call: Invocation) -> int:
    """List the tokens, without their secrets, and the sessions of browsers.

    \b
    Examples:
      rota manager token list
    """
    with call.connect() as client:
        found = client.tokens()
    if call.json:
        print_json({"tokens": found})
        return 0
    if call.quiet:
        print_out(*(each.name for each in found))
        return 0
    from rota.cli.render.text import harmless, table

    rows = [
        [
            harmless(f"{each.name} of {each.of}" if each.of else each.name),
            each.role,
            harmless(each.user or ""),
            harmless(each.host or ""),
            f"{each.created_at.astimezone():%Y-%m-%d %H:%M}",
            f"{each.expires_at.astimezone():%Y-%m-%d %H:%M}" if each.expires_at else "never",
        ]
        for each in found
    ]
    print_out(table(["NAME", "ROLE", "USER", "HOST", "MADE", "EXPIRES"], rows))
    return 0


@token.command("remove")
@click.argument("name")
def token_remove(call: Invocation, name: str) -> int:
    """Revoke a token at once and end the sessions that were made with it; or end a session.

    \b
    Examples:
      rota manager token remove alice
      rota manager token remove ui-1f0c2a9b
    """
    with call.connect() as client:
        client.remove_token(name)
    if call.json:
        print_json({"removed": name})
    elif not call.quiet:
        print_out(f"removed {name}")
    return 0
