"""`rota manager adopt`: declare whether a home was moved or copied."""

from __future__ import annotations

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.render.printing import print_out


@command("adopt")
@click.option("--moved", is_flag=True, help="It is the same deployment, in another place.")
@click.option("--copy", is_flag=True, help="It is a copy: make it a deployment of its own.")
def adopt(call: Invocation, moved: bool, copy: bool) -> int:
    """Declare whether a home was moved or copied. No manager may be running in it.

    A manager does not start in a directory that was copied while the original is still there: both would run
    the same jobs. --moved says that this one is the deployment from now on. --copy gives it an id, an
    authority and tokens of its own; jobs that were running are lost there, as after 'rota manager restore',
    since they belong to the original, and jobs that waited run in both.

    \b
    Examples:
      rota manager adopt --moved
      rota --home /srv/trial manager adopt --copy
    """
    import os

    import msgspec

    from rota.errors import BadInput
    from rota.store.home.adopt import adopt as adopted

    if call.address or os.environ.get("ROTA_MANAGER"):
        raise BadInput("a home is adopted where it is", hint="run this there, without --address")
    if moved == copy:
        raise BadInput("give one of --moved and --copy", hint="--copy if the original goes on, else --moved")
    done = adopted(call.home.path, copy=copy)
    if call.json:
        print_json({"home": str(call.home), **msgspec.structs.asdict(done)})
    elif call.quiet:
        print_out(done.id)
    else:
        from rota.cli.render.text import count, few_ranges, harmless

        what = f"a deployment of its own, {done.id}" if copy else f"the home of deployment {harmless(done.id)}"
        print_out(f"{harmless(str(call.home))} is now {what}")
        if copy:
            print_out("its certificates and tokens are new; those of the original are not valid here")
        if done.doubted:
            print_out(
                f"{count(len(done.doubted), 'job')} had an attempt under way, now lost here: "
                f"{few_ranges(done.doubted)} (see 'rota confirm-dead')"
            )
    return 0
