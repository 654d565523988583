"""Conditions that the shell answers by itself say what they would say in a process of their own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rota.core.pipelines.conditions import read_answers, take_asks
from rota.core.pipelines.flow import Ask
from rota.core.pipelines.plain_conditions import is_plain
from rota.core.pipelines.session import Session
from tests.core.pipelines.lab import machine, pipeline, stage

#: With what they say in the directory of the test.
PLAIN = {
    "true": True,
    "false": False,
    "test -e here": True,
    " test -e gone ": False,
    "[ -d here ]": True,
    "[ here = 'he re' ]": False,
    'test -z "$EMPTY"': True,
    'test "$PUSH" = yes': True,
    "[ ! -e here ]": False,
    "test a -bad b": False,
    "test -f 'h*e'": False,
}
OTHERS = [
    "test -e a; rm b", "test -e a && b", "test -e *", "test $x = 1", "test -n `id`", "test -n $(id)", "test -e ~",
    "test -e a > b", "test -e a # b", "test -e a\nrm b", "test -e 'a\nb'", 'test -n "$(id)"', 'test -n "$r"',
    'test "$ROTA_OUTCOME" = failed', "test", "[ -e a", "true &", "truely", ": ${x:=1}", "exit 0", "cache has x",
]  # fmt: skip


@pytest.mark.parametrize("command", PLAIN)
def test_only_a_test_of_plain_words_is_plain(command: str) -> None:
    assert is_plain(command)


@pytest.mark.parametrize("command", OTHERS)
def test_what_could_change_the_shell_or_last_is_not_plain(command: str) -> None:
    assert not is_plain(command)


@pytest.mark.parametrize("apart", [False, True])
def test_plain_and_other_conditions_give_the_same_answers(
    tmp_path: Path, apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    if apart:
        monkeypatch.setattr("rota.core.pipelines.conditions.is_plain", lambda _command: False)
    expected = PLAIN | {"exit 3": False, "test -e here; exit 0": True}
    session = _session(list(expected))
    session.asks.extend(Ask(0, number, (number,)) for number in range(len(expected)))
    asks, script = take_asks(session)
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PUSH": "yes", "EMPTY": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    answers = read_answers(session, asks, done.stdout)
    assert not any(answer.failed for answer in answers), done
    assert {text: each.skips[n] for n, (text, each) in enumerate(zip(expected, answers, strict=True))} == expected


def test_nothing_is_timed_where_all_conditions_are_plain() -> None:
    for command, processes in {"test -e here": 0, "grep -q x here": 1}.items():
        session = _session([command])
        session.asks.append(Ask(0, 0, (0,)))
        assert take_asks(session)[1].count("clock=") == processes


def _session(commands: list[str]) -> Session:
    """With a stage for each condition, all of which are still to be asked about."""
    m = machine(cores=1)
    m.start(pipeline([stage(f"s{n}", skip_if=command) for n, command in enumerate(commands)], {"e1": ()}))
    session = m.session()
    session.asks.clear()
    return session
