"""Every command answers in JSON with at least the fields that a release had, of the same types and meaning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from rota.cli.main import rota
from tests.deployment import Deployment, deployment
from tests.golden.deliberate import DELIBERATE
from tests.golden.kept import RELEASES, golden
from tests.golden.session import NEWER, NOT_JSON, STEPS, play

#: Objects whose names are data: states, groups, hosts, policies.
_MAPS = {"counts", "groups", "group_rates", "group_expected_end", "lines", "shares", "closed"}
#: Fields that have the same value each time, whatever the machine.
_STABLE = set(
    (
        "id cmd cwd name group project queue priority exit_code signal added existing retried changed "
        "unchanged missing limits after dep_groups retries array_id array_index on_exit scratch "
        "walltime_s checkpoint_s given override stdout stderr admitted matched removed type levels "
        "built_in order backfill paused draining role rule set position failed"
    ).split()
)
#: Of what depends on how far a job that is tried again has come, or on the machine, only the form is compared.
_FORM_ONLY = (
    "status",
    "accounting",
    "learn",
    "jobs",
    "node",
    "usage",
    "doctor",
    "manager token list",
    "manager status",
)


def lost(old: Any, new: Any, where: str, *, values: bool) -> Iterator[str]:
    """What readers of the release's JSON would miss."""
    if old is None or new is None:
        return  # nothing was known, or nothing is; that a field is there its object says
    if isinstance(old, dict) and isinstance(new, dict):
        if where.rpartition(".")[2] in _MAPS:
            for one in new.values():
                yield from lost(next(iter(old.values()), None), one, f"{where}.*", values=False)
            return
        for key, value in old.items():
            if key not in new:
                yield f"{where}.{key} is gone"
                continue
            yield from lost(value, new[key], f"{where}.{key}", values=values)
            if values and key in _STABLE and not _has_fields(value) and value != new[key]:
                yield f"{where}.{key} was {value!r}, and is {new[key]!r}"
    elif isinstance(old, list) and isinstance(new, list):
        if old and not new and values:
            yield f"{where} is empty"
        for n, one in enumerate(new):
            if old:
                same = n < len(old)
                yield from lost(old[n if same else -1], one, f"{where}[]", values=values and same)
    elif _type(old) is not _type(new):
        yield f"{where} was {old!r}, and is {new!r}"


def _has_fields(value: Any) -> bool:
    """Is it an object, or a list of them? Of these each field is looked at by itself, and more may come."""
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(one, dict) for one in value))


def _type(value: Any) -> type:
    return float if type(value) is int else type(value)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    with deployment(tmp_path_factory.mktemp("session"), http="on") as made:
        yield play(lambda *args, input="": _typed(made, *args, input=input), str(made.work))


def _typed(made: Deployment, *args: str, input: str) -> tuple[int, str, str]:
    done = made.rota(*args, input=input, cwd=Path("/"))
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("release", RELEASES)
def test_every_field_of_every_command_is_still_there(release: str, told: list[dict[str, Any]]) -> None:
    found = []
    known = {(entry["typed"], n) for n, entry in enumerate(told)}
    for n, entry in enumerate(golden(release, "session")):
        typed = entry["typed"]
        assert (typed, n) in known, "the session was changed; steps of a release stay, new ones go to the end"
        if entry["status"] != told[n]["status"]:
            found.append(f"{typed}: status was {entry['status']}, and is {told[n]['status']}: {told[n]['value']}")
        found += lost(entry["value"], told[n]["value"], f"{typed}:", values=not typed.startswith(_FORM_ONLY))
    unknown = [
        line for line in found if (release, line.partition(" was ")[0].removesuffix(" is gone")) not in DELIBERATE
    ]
    assert unknown == []


def _commands(group: click.Group, *words: str) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group) and not command.invoke_without_command:
            yield from _commands(command, *words, name)
        else:
            yield " ".join((*words, name))


def test_every_command_is_in_the_session() -> None:
    typed = [f"{words} " for words, *_ in STEPS]
    missing = {name for name in _commands(rota) if not any(words.startswith(f"{name} ") for words in typed)}
    assert missing - NOT_JSON == NEWER


def test_a_field_that_goes_or_changes_is_told() -> None:
    old = {"id": 1, "cmd": "true", "wall_s": 1.5, "size": {"cpus": 1}, "attempts": [{"number": 1}]}
    assert list(lost(old, old, "x", values=True)) == []
    assert list(lost(old, old | {"more": 1, "wall_s": None}, "x", values=True)) == []
    for wrong in (
        {"id": 2}, {"cmd": "false"}, {"wall_s": "1.5"}, {"size": {}}, {"size": []}, {"attempts": [{"n": 1}]},
        {"attempts": []},
    ):  # fmt: skip
        assert list(lost(old, old | wrong, "x", values=True)), wrong
    assert list(lost({"a": 1}, {}, "x", values=False)) == ["x.a is gone"]
