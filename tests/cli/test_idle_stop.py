"""A manager that stopped because it was idle is started again by commands that only ask, and by nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import rota
from rota.errors import NoManager
from tests.deployment import Deployment, deployment, wait_until

_ASKING = """
jobs;status;show 1;why 1;logs 1;wait 1;plan;gantt;accounting;usage;learn;limit;limit a;share list
node list;node show a;queue list;quota list;rule list;rule show a;calendar list;calendar show
resource list;property list
"""
_ACTING = """
kill 1;retry 1;remove 1;hold 1;modify 1 --priority 3;checkpoint 1;walltime 1 +1h;limit a:3;learn --forget a
add --no-start -- true;node set a --drain;queue remove a;manager status;manager stop;manager pause
"""


@pytest.mark.parametrize(("commands", "status"), [(_ASKING, 2), (_ACTING, 4)], ids=["asking", "acting"])
def test_commands_that_only_ask_start_it_again(tmp_path: Path, commands: str, status: int) -> None:
    """A setting that is wrong shows who would start a manager, without starting any."""
    place = Deployment(tmp_path)
    place.home.mkdir(mode=0o700)
    for name in ("rota.db", "idle-stopped"):
        (place.home / name).touch()
    (place.home / "rota.toml").write_text('idle_stop = "soon"')
    if status == 4:
        (place.home / "rota.toml").unlink()
    for command in commands.replace("\n", ";").strip(";").split(";"):
        (place.home / "idle-stopped").touch()
        done = place.rota(*command.split())
        assert (command, done.returncode) == (command, status), done.stderr
        assert ("idle_stop" if status == 2 else "start one with 'rota manager start'") in done.stderr
        assert not (place.home / "manager.lock").exists()


def idle(made: Deployment) -> None:
    marks = made.home / "idle-stopped", made.home / "manager.json"
    wait_until(lambda: [mark.exists() for mark in marks] == [True, False], "the manager has stopped")


def test_it_stops_when_idle_and_comes_back_for_a_question(tmp_path: Path) -> None:
    with deployment(tmp_path) as made:
        made.home.mkdir(mode=0o700)
        (made.home / "rota.toml").write_text("idle_stop = 0.5")
        made.ok("run", "--", "true")
        idle(made)
        assert made.json("jobs")["total"] == 1
        idle(made)
        with pytest.raises(NoManager):
            rota.connect(made.home)
        with rota.connect(made.home, start=True) as client:
            assert client.status().counts == {"complete": 1}
        idle(made)

        async def ask() -> dict[str, int]:
            async with await rota.connect_async(made.home, start=True) as manager:
                return (await manager.status()).counts

        assert asyncio.run(ask()) == {"complete": 1}
        idle(made)
        assert made.rota("manager", "stop").returncode == 4
        assert made.rota("jobs").returncode == 4  # it was stopped, if late


def test_one_that_was_stopped_by_a_command_stays_stopped(tmp_path: Path) -> None:
    with deployment(tmp_path) as made:
        made.ok("run", "--", "true")
        made.ok("manager", "stop")
        done = made.rota("jobs")
        assert (done.returncode, "rota manager start" in done.stderr) == (4, True)
        assert not (made.home / "idle-stopped").exists()
