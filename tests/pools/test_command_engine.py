"""The engine `command` by itself: what it gives to the programs of a site, and what it takes from them."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import msgspec
import pytest

from rota.plan.need import Need
from rota.plan.size import Size
from rota.pools.base import EngineFailed, EngineRefused, EngineSetup, Group, RunnerAsk, RunnerState, Seen
from rota.pools.engines import make_engine
from tests.deployment import is_alive, wait_until

SIZE = Size(cpus=150, mem=1 << 30, disk=5, gpus=1)
GROUP = Group("far", Need(SIZE))


class Programs:
    """Programs of a site, as scripts."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.setup = EngineSetup(
            pool="far", prefix="rota-1-far", rota="/opt/rota", idle_s=3.0, options=("--fast",), timeout_s=30.0,
            start_command=(str(top / "start"), "a b"), stop_command=(str(top / "stop"),),
            list_command=(str(top / "list"),),
        )  # fmt: skip
        for name in ("start", "stop", "list"):
            self.write(name, "echo '{}'")

    def write(self, name: str, body: str) -> None:
        path = self.top / name
        path.write_text(f'#!/bin/sh\ncat > {self.top}/{name}.given\necho "$@" > {self.top}/{name}.args\n{body}\n')
        path.chmod(0o755)

    def given(self, name: str) -> object:
        return json.loads((self.top / f"{name}.given").read_text())


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


def ask(number: int) -> RunnerAsk:
    return RunnerAsk(f"rota-1-far-{number}", Path(f"/t/{number}"), SIZE, 90.5)


def test_one_call_starts_all_runners_of_a_group(programs: Programs) -> None:
    programs.write("start", """echo '{"ids": {"rota-1-far-2": "e2", "rota-1-far-1": "e1"}}'""")
    engine = make_engine("command", programs.setup)
    assert engine.submit(GROUP, [ask(1), ask(2), ask(3)]) == ["e1", "e2", ""]
    size = {"cpus": 1.5, "mem": 1 << 30, "disk": 5, "gpus": 1, "seconds": 90.5}
    assert programs.given("start") == {
        "pool": "far", "rota": "/opt/rota", "idle_s": 3.0, "options": ["--fast"],
        "runners": [{"name": f"rota-1-far-{n}", "ticket": f"/t/{n}", **size} for n in (1, 2, 3)],
    }  # fmt: skip
    assert (programs.top / "start.args").read_text() == "a b\n", "arguments are not split again"


def test_runners_are_withdrawn_by_id(programs: Programs) -> None:
    make_engine("command", programs.setup).withdraw(["e1", "e2"])
    assert programs.given("stop") == {"pool": "far", "ids": ["e1", "e2"]}


def test_a_survey_has_only_names_of_the_pool(programs: Programs) -> None:
    rows = [
        {"name": "rota-1-far-aa", "id": "1", "state": "pending"},
        {"name": "rota-1-far-bb", "id": "2", "state": "running", "host": "n7", "more": 1},
        {"name": "rota-1-far-away-cc", "id": "3", "state": "running"},
        {"name": "rota-2-far-dd", "id": "4", "state": "running"},
        {"name": "rota-1-far-ee", "id": "5", "state": "gone"},
    ]
    programs.write("list", f"echo '{json.dumps({'runners': rows})}'")
    assert make_engine("command", programs.setup).survey() == [
        Seen("rota-1-far-aa", "1", RunnerState.PENDING),
        Seen("rota-1-far-bb", "2", RunnerState.RUNNING, "n7"),
        Seen("rota-1-far-ee", "5", RunnerState.GONE),
    ]
    assert programs.given("list") == {"pool": "far", "prefix": "rota-1-far"}


def test_limits_are_known_from_the_first_survey_on(programs: Programs) -> None:
    programs.write("list", """echo '{"runners": [], "limits": {"cpus": 2, "seconds": 3600}}'""")
    engine = make_engine("command", programs.setup)
    assert engine.can_fit(Size(cpus=100_000), 1e9)
    engine.survey()
    assert engine.can_fit(Size(cpus=200, mem=1 << 60), 3600)
    assert not engine.can_fit(Size(cpus=250), 60)
    assert not engine.can_fit(Size(cpus=100), 3601)
    programs.write("list", """echo '{"runners": []}'""")
    engine.survey()
    assert engine.can_fit(Size(cpus=250), 1e9), "each answer has all limits that there are"


@pytest.mark.parametrize(
    ("body", "refused", "text"),
    [
        ("echo first >&2; echo 'the  last one' >&2; echo >&2; exit 1", False, "ended with 1: the last one"),
        ("echo full >&2; exit 2", True, "ended with 2: full"),
        ("printf 'a\\033[31mb\\007\\302\\233c\\n' >&2; exit 1", False, "1: a\ufffd\\[31mb\ufffd\ufffdc$"),
        ("kill -9 $$", False, "ended with -9"),
        ("echo hello", False, "did not print what it should"),
        ("""echo '{"ids": [1]}'""", False, "did not print what it should"),
        ("printf '\\377'", False, "did not print what it should"),
    ],
)
def test_a_program_that_fails_says_why(programs: Programs, body: str, refused: bool, text: str) -> None:
    programs.write("start", body)
    with pytest.raises(EngineFailed, match=text) as found:
        make_engine("command", programs.setup).submit(GROUP, [ask(1)])
    assert isinstance(found.value, EngineRefused) == refused


def test_a_program_that_cannot_be_run_has_done_nothing(programs: Programs) -> None:
    (programs.top / "start").unlink()
    with pytest.raises(EngineRefused, match="No such file"):
        make_engine("command", programs.setup).submit(GROUP, [ask(1)])


def test_a_list_that_cannot_be_understood_is_no_list(programs: Programs) -> None:
    for answer in ("{}", '{"runners": [{"name": "rota-1-far-a", "id": "1", "state": "odd"}]}', ""):
        programs.write("list", f"echo '{answer}'")
        with pytest.raises(EngineFailed):
            make_engine("command", programs.setup).survey()


def test_a_program_that_takes_too_long_is_killed_with_its_children(programs: Programs, tmp_path: Path) -> None:
    programs.write("start", f"sleep 600 & echo $! > {tmp_path}/child; sleep 600")
    setup = msgspec.structs.replace(programs.setup, timeout_s=2.0)
    with pytest.raises(EngineFailed, match=r"took longer than 2 s") as found:
        make_engine("command", setup).submit(GROUP, [ask(1)])
    assert not isinstance(found.value, EngineRefused)
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: not is_alive(child), "its child is dead")


def test_what_a_program_leaves_behind_does_not_hold_up_its_answer(programs: Programs) -> None:
    programs.write("list", """setsid sleep 5 & echo '{"runners": []}'""")
    assert make_engine("command", programs.setup).survey() == []


def test_a_program_that_prints_without_end_is_killed_before_the_disk_is_full(
    programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.pools.command._MOST_BYTES", 1 << 20)
    programs.write("list", f"echo $$ > {tmp_path}/pid; cat /dev/zero")
    with pytest.raises(EngineFailed, match="printed more than 1 MiB"):
        make_engine("command", programs.setup).survey()
    assert not is_alive(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("deaf", [False, True])
def test_a_program_that_hangs_is_ended_with_its_children_when_the_manager_stops(
    programs: Programs, tmp_path: Path, deaf: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.pools.command._PATIENCE_S", 0.1)
    trap = "trap '' TERM; " if deaf else ""
    programs.write(
        "start", f"{trap}sleep 600 & echo $! > {tmp_path}/child; touch {tmp_path}/there; wait; sleep 600"
    )
    engine = make_engine("command", programs.setup)
    failures: list[EngineFailed] = []

    def submit() -> None:
        try:
            engine.submit(GROUP, [ask(1)])
        except EngineFailed as error:
            failures.append(error)

    thread = threading.Thread(target=submit)
    thread.start()
    wait_until((tmp_path / "there").exists, "it hangs")
    engine.close()
    thread.join(30)
    assert not thread.is_alive()
    assert [str(failures[0]).partition(" ")[2]] == ["was ended: the manager stops"]
    assert not isinstance(failures[0], EngineRefused), "it may have done what it was asked"
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: not is_alive(child), "its child is dead")
    with pytest.raises(EngineRefused, match="the manager stops"):
        engine.survey()
