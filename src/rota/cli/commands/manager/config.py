"""`rota config`: every setting, its value and where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota.cli.command import Group, Invocation, print_json
from rota.cli.render.printing import print_err, print_out

if TYPE_CHECKING:
    from rota.pool_settings import PoolSettings


@click.group("config", cls=Group)
def config() -> None:
    """Show and check the settings."""


@config.command("show")
def show(call: Invocation) -> int:
    """Print every setting, its value, its source, and the value of the running manager where that differs.

    A manager reads its settings when it starts, so later changes need a restart.

    \b
    Examples:
      rota config show
      rota config show --json
    """
    from rota.config import all_settings, load

    loaded = load(call.home)
    known = all_settings()
    running, why = _running(call)
    values = {name: getattr(loaded.settings, name) for name in known}
    # A setting that the manager does not tell is one that its version does not have.
    stale = [name for name in known if running is not None and name in running and running[name] != values[name]]
    if call.json:
        found = {
            name: {
                "value": values[name],
                "origin": loaded.origin[name],
                "running": running.get(name) if running is not None else None,
                "restart": name in stale,
            }
            for name in known
        }
        body = {"home": str(call.home), "files": loaded.files, "running": running is not None}
        pools = {name: _table(pool) for name, pool in loaded.settings.pools.items()}
        print_json({**body, "restart": stale, "settings": found, "pools": pools})
        return 0
    from rota.cli.render.text import harmless, table

    rows = []
    for name, setting in known.items():
        has = ""
        if running is not None and name in stale:
            has = f"{harmless(setting.show(running[name]))}, until it is restarted"
        rows.append([name, harmless(setting.show(values[name])), harmless(loaded.origin[name]), has])
    print_out(f"home: {harmless(str(call.home))}")
    if running is None:
        print_out(f"manager: {why}")
        rows = [row[:-1] for row in rows]
    else:
        said = f"{len(stale)} of its settings differ; 'rota manager stop' and 'start' take them over"
        print_out(f"manager: running, {said if stale else 'with these settings'}")
    print_out(table(["SETTING", "VALUE", "FROM", *([] if running is None else ["THE MANAGER HAS"])], rows))
    for name, pool in loaded.settings.pools.items():
        print_out(f"\n[pools.{name}]")
        print_out("\n".join(f"{key} = {harmless(_toml(value))}" for key, value in _table(pool).items()))
    return 0


def _table(pool: PoolSettings) -> dict[str, Any]:
    """The keys of a pool with their values, defaults included; `max_runners` may be that of all pools."""
    import msgspec

    values: dict[str, Any] = msgspec.to_builtins(pool)
    extra = values.pop("extra")
    del values["name"]
    return {key: value for key, value in {**values, **extra}.items() if value is not None}


def _toml(value: object) -> str:
    """A text, number or list as `rota.toml` has it."""
    import json

    return json.dumps(value, ensure_ascii=False)


def _running(call: Invocation) -> tuple[dict[str, Any] | None, str]:
    """The settings of the running manager, or None and why they are not known."""
    from rota.errors import BadInput, Denied, NoManager

    try:
        with call.connect() as client:
            return client.manager_settings().settings, ""
    except NoManager:
        return None, "none is running"
    except Denied:
        return None, "it shows its settings only to administrators"
    except BadInput:
        return None, "it is of an older version, which does not show its settings"


@config.command("check")
def check(call: Invocation) -> int:
    """Check all configuration files and variables.

    \b
    Examples:
      rota config check && rota manager start
    """
    import difflib
    import os

    from rota.config import all_settings, load
    from rota.core.machines.energy_rules import rules_from
    from rota.pool_settings import check_address

    loaded = load(call.home)
    rules_from(loaded.settings)
    unreached = [check_address(pool, loaded.settings.host) for pool in loaded.settings.pools.values()]
    known = [setting.variable for setting in all_settings().values()]
    near = {
        name: close[0]
        for name in os.environ
        if name.startswith("ROTA_")
        and name not in (*known, *_OTHER)
        and (close := difflib.get_close_matches(name, known, n=1, cutoff=0.85))
    }
    for name, meant in sorted(near.items()):
        print_err(f"rota: warning: the variable {name} means nothing; did you mean {meant}?")
    for warning in filter(None, unreached):
        print_err(f"rota: warning: {warning}")
    if call.json:
        body = {
            "ok": True,
            "files": loaded.files,
            "warnings": [*(f"{k}: did you mean {v}?" for k, v in near.items()), *filter(None, unreached)],
        }
        print_json(body)
    elif not call.quiet:
        print_out(f"the configuration is good ({', '.join(loaded.files) or 'no files, only defaults'})")
    return 0


#: Variables that are not settings.
_OTHER = ("ROTA_HOME", "ROTA_MANAGER", "ROTA_TOKEN_FILE", "ROTA_CA", "ROTA_TEST_SKIP")
