"""Whatever is written as a request, an expression or types is understood or refused: nothing else ever happens."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from rota.errors import BadInput
from rota.plan.language.expression import Kind, check, matches, parse, text
from rota.plan.language.request_parser import check_alternative, parse_request, request_text
from rota.plan.language.type_parser import parse_types, type_words
from tests.dose import FACTOR, half

KINDS: dict[str, Kind] = {"gpu": "yesno", "mem": "integer", "switch": "text", "host": "text"}

REQUESTS = [
    "/switch=2/nodes=10,walltime=10:0",
    "{gpu='YES'}/nodes=ALL+{gpu='NO'}/core=20",
    "nodes=2/core=4,walltime=1h30m",
    "walltime=1-12:00:00",
    '{host in ("a,b", "c}") and mem>=64}/core=1+core=HALF_BEST',
]
EXPRESSIONS = [
    "gpu = yes and (mem >= 64 or switch in ('sw1', 'sw2'))",
    "not (switch like 'sw_%' or host <> 'it''s') AND mem != -5",
    "64 < mem and gpu != 'NO'",
    "host not in (\"a\", 'b') or host not like '%'",
]
TYPES = ["besteffort", "inner=12", "timesharing=user,*", "placeholder=a", "deadline=1700000000", "noop"]
PIECES = [
    *"{}()/+,=<>!'\"%_-:;\\\n\t\0 019aZé٣½’\U0001f600\ud800",
    *[
        "nodes",
        "walltime",
        "not ",
        " and ",
        " or ",
        " in ",
        " like ",
        "''",
        "ALL",
        "<=",
        "1h",
        "9" * 30,
        "gpu",
        "yes",
    ],
]


def broken(chance: random.Random, sound: list[str]) -> str:
    """Mostly a sound text with some pieces put in, taken out or moved, else any pieces."""
    if chance.random() < 0.2:
        return "".join(chance.choices(PIECES, k=chance.randrange(30)))
    made = chance.choice(sound)
    for _ in range(chance.randrange(1, 4)):
        start, end = sorted(chance.randrange(len(made) + 1) for _ in range(2))
        match chance.randrange(4):
            case 0:
                made = made[:start] + chance.choice(PIECES) + made[start:]
            case 1:
                made = made[:start] + made[min(end, start + 3) :]
            case 2:
                made = made[:start] + made[start:end] * 2 + made[end:]
            case _:
                made = made[:start] + chance.choice(sound)[start:]
    return made


def read_request(given: str) -> None:
    alternative = parse_request(given)
    assert parse_request(request_text(alternative)) == alternative
    check_alternative(alternative, given, levels=("switch", "host", "core"), kinds=KINDS)


def read_expression(given: str) -> None:
    tree = parse(given)
    assert parse(text(tree)) == tree
    matches(tree, {"gpu": True, "mem": 64, "switch": "sw1"})
    check(tree, KINDS)


def read_types(given: str) -> None:
    types = parse_types(given.split(" "))
    assert parse_types(type_words(types)) == types


READERS: list[tuple[Callable[[str], None], list[str], int]] = [
    (read_request, REQUESTS, 10_000),
    (read_expression, EXPRESSIONS, 10_000),
    (read_types, TYPES, 5_000),
]


@pytest.mark.hypothesis
@pytest.mark.parametrize(("read", "sound", "number"), READERS)
def test_a_broken_text_is_understood_or_refused(
    read: Callable[[str], None], sound: list[str], number: int
) -> None:
    chance = random.Random(4)
    refused, number = 0, half(number) * FACTOR
    for _ in range(number):
        given = broken(chance, sound)
        try:
            read(given)
        except BadInput as error:
            refused += 1
            assert error.message, given
            assert str(error).isprintable(), given
        except Exception as error:
            pytest.fail(f"{given!r}: {error!r}")
    # Both happen often, or the texts are not worth reading.
    assert number / 50 < refused < number * 49 / 50


PART = 65_000


@pytest.mark.parametrize(
    "piece",
    [
        *[
            "(",
            ")",
            "not ",
            "'",
            '"',
            "''",
            "a",
            "9",
            "-",
            " ",
            "=",
            "a=1 or ",
            "a=1 and ",
            "a in (1",
            ",",
            "1,",
            "{",
        ],
        *[
            "a=(",
            "%",
            "é",
            "\n",
            "a in ('",
            "not(",
            "(a=1)and",
            "/a=1",
            "core=1+",
            "{a=1}core=1+",
            "walltime=",
            "1:",
        ],
        *["{'", "{''}", "}", "a=1/b=", "0", "nodes=ALL/"],
    ],
)
def test_a_text_of_64_kib_is_read_to_the_end_whatever_it_repeats(piece: str) -> None:
    repeated = piece * (PART // len(piece))
    for before, after in (
        ("", ""),
        ("(", "a=1"),
        ("a in (", "1)"),
        ("a like '", "'"),
        ("core=1,walltime=", ""),
        ("{a='", "'}core=1"),
    ):
        for read in (parse_request, parse):
            try:
                read(before + repeated + after)
            except BadInput as error:
                assert 0 < len(str(error)) < 500
