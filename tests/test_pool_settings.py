"""The tables `[pools.NAME]`: their keys, their order, and mistakes in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.config import load
from rota.errors import BadInput
from rota.home import Home

COMMAND = 'engine = "command"\nstart = ["/x/start"]\nstop = ["/x/stop"]\nlist = ["/x/list", "-a"]\n'


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.create()
    return made


def environ(home: Home) -> dict[str, str]:
    return {"HOME": str(home.path), "XDG_CONFIG_HOME": str(home.path / "config")}


def test_pools_come_in_the_order_of_the_file_with_all_keys(home: Home) -> None:
    more = 'max_runners = 7\nidle_s = 0.5\noptions = ["-q", "a b"]\naddress = "[::1]:7000"\nrota = "/opt/rota"\n'
    home.config.write_text(f'grace = "1s"\n[pools.zeta]\n{COMMAND}{more}[pools.alpha]\n{COMMAND}')
    zeta, alpha = load(home, environ=environ(home)).settings.pools.values()
    assert (zeta.name, zeta.engine, zeta.max_runners, zeta.idle_s) == ("zeta", "command", 7, 0.5)
    assert (zeta.options, zeta.address, zeta.rota) == (("-q", "a b"), "[::1]:7000", "/opt/rota")
    assert zeta.extra == {"start": ("/x/start",), "stop": ("/x/stop",), "list": ("/x/list", "-a")}
    assert (alpha.name, alpha.most_runners(9), alpha.idle_s) == ("alpha", 9, 2.0)


def test_without_tables_there_are_no_delegated_pools(home: Home) -> None:
    assert load(home, environ=environ(home)).settings.pools == {}


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("pools = 3", "'pools' must be tables", "[pools.NAME]"),
        ("[pools.a]\nmax_runners = 1", "[pools.a]: 'engine' is missing", "command"),
        ('[pools.a]\nengine = "slrum"', "[pools.a]: unknown engine 'slrum'", "command"),
        (f"[pools.local]\n{COMMAND}", "every deployment has the pool 'local'", "another name"),
        (f"[pools.nodes]\n{COMMAND}", "every deployment has the pool 'nodes'", "another name"),
        (f"[pools.none]\n{COMMAND}", "'none' means no pool", "another name"),
        (f"[pools.Big_One]\n{COMMAND}", "'Big_One' is no name of a pool", "lower-case"),
        (
            f"[pools.a]\n{COMMAND}max_runer = 1",
            "[pools.a]: unknown key 'max_runer'",
            "did you mean 'max_runners'?",
        ),
        (f"[pools.a]\n{COMMAND}zzz = 1", "[pools.a]: unknown key 'zzz'", "engine 'command' knows"),
        (f"[pools.a]\n{COMMAND}max_runners = -1", "'max_runners' must be a whole number", "0 to"),
        (f'[pools.a]\n{COMMAND}idle_s = "2s"', "'idle_s' must be a number of seconds", "0 to"),
        (f'[pools.a]\n{COMMAND}options = "-q"', "'options' must be a list", "one argument each"),
        (f'[pools.a]\n{COMMAND}address = "host"', "'address': 'host' is not an address", "192.0.2.1:7000"),
        (f'[pools.a]\n{COMMAND}rota = "rota"', "'rota': 'rota' is not an absolute path", "/"),
        ('[pools.a]\nengine = "command"\nstart = ["/x"]\nlist = ["/y"]', "'stop' is missing", "cannot work"),
        ('[pools.a]\nengine = "command"\nstart = []', "'start' must be a program", "start"),
        ('[pools.a]\nengine = "command"\nstart = "/x"', "'start' must be a program", '["/usr/local/bin/start"'),
        (
            '[pools.a]\nengine = "command"\nstart = ["x"]',
            "'start': 'x' is not an absolute path",
            "begin it with /",
        ),
        (f"[pools.a]\n{COMMAND}options = [1]", "'options' must be a list of texts", "one argument each"),
        (f"[pools.a]\n{COMMAND}timeout_s = 0", "'timeout_s' must be a number of seconds", "1 to"),
        (f"[pools.a]\n{COMMAND}settle_s = 0.5", "'settle_s' must be a number of seconds", "1 to"),
        (f'[pools.a]\n{COMMAND}address = "tls://host:7"', "'tls://host:7' is not an address", "192.0.2.1:7000"),
        ("[pool.a]\nx = 1", "unknown setting 'pool'", "did you mean 'pools'?"),
    ],
)
def test_a_mistake_names_the_file_the_pool_the_key_and_the_fix(
    home: Home, text: str, message: str, hint: str
) -> None:
    home.config.write_text(text)
    with pytest.raises(BadInput) as refused:
        load(home, environ=environ(home))
    assert str(home.config) in refused.value.message
    assert message in refused.value.message
    assert hint in (refused.value.hint or "")
