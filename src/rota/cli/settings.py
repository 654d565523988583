"""`rota config`: every setting, its value and where it comes from."""

from __future__ import annotations

import click

from rota.cli.command import Group, Invocation, print_json
from rota.cli.printing import aside, say


@click.group("config", cls=Group)
def config() -> None:
    """Show and check the settings."""


@config.command("show")
def show(call: Invocation) -> int:
    """Print every setting, its value and where it comes from.

    \b
    Examples:
      rota config show
      rota config show --json
    """
    from rota.config import all_settings, load

    loaded = load(call.home)
    known = all_settings()
    if call.json:
        values = {name: {"value": getattr(loaded.settings, name), "origin": loaded.origin[name]} for name in known}
        body = {"home": str(call.home), "files": loaded.files, "settings": values}
        print_json(body)
        return 0
    from rota.cli.terminal import harmless, table

    rows = [
        [name, harmless(setting.show(getattr(loaded.settings, name))), harmless(loaded.origin[name])]
        for name, setting in known.items()
    ]
    say(f"home: {harmless(str(call.home))}")
    say(table(["SETTING", "VALUE", "FROM"], rows))
    return 0


@config.command("check")
def check(call: Invocation) -> int:
    """Check all configuration files and variables; say nothing but what is wrong.

    \b
    Examples:
      rota config check && rota manager start
    """
    import difflib
    import os

    from rota.config import all_settings, load
    from rota.manager.energy import rules_of

    loaded = load(call.home)
    rules_of(loaded.settings)
    known = [setting.variable for setting in all_settings().values()]
    near = {
        name: close[0]
        for name in os.environ
        if name.startswith("ROTA_")
        and name not in (*known, *_OTHER)
        and (close := difflib.get_close_matches(name, known, n=1, cutoff=0.85))
    }
    for name, meant in sorted(near.items()):
        aside(f"rota: warning: the variable {name} means nothing; did you mean {meant}?")
    if call.json:
        body = {
            "ok": True,
            "files": loaded.files,
            "warnings": [f"{k}: did you mean {v}?" for k, v in near.items()],
        }
        print_json(body)
    elif not call.quiet:
        say(f"the configuration is good ({', '.join(loaded.files) or 'no files, only defaults'})")
    return 0


#: Variables that are not settings.
_OTHER = ("ROTA_HOME", "ROTA_MANAGER", "ROTA_TOKEN_FILE", "ROTA_CA", "ROTA_TEST_SKIP")
