"""Requests: what is written is what is meant, and what is not understood is refused where it stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadInput
from rota.plan.language.expression import Kind, text
from rota.plan.language.request import ALL, BEST, HALF_BEST, Alternative, Level, ResourceGroup
from rota.plan.language.request_parser import check_alternative, parse_request, request_text
from tests.plan.language.expressions import expressions

LEVELS = ("switch", "host", "core")
KINDS: dict[str, Kind] = {"gpu": "yesno", "mem": "integer", "switch": "text", "host": "text"}


def refusal(request: str) -> BadInput:
    with pytest.raises(BadInput) as refused:
        check_alternative(parse_request(request), request, levels=LEVELS, kinds=KINDS)
    return refused.value


def one(*levels: tuple[str, int | str], where: str = "") -> ResourceGroup:
    return ResourceGroup(tuple(Level(name, number) for name, number in levels), where)


def test_levels_are_nested_and_ten_and_nothing_are_ten_hours() -> None:
    read = parse_request("/switch=2/nodes=10,walltime=10:0")
    assert read == Alternative((one(("switch", 2), ("host", 10)),), 36_000.0)


def test_groups_are_added_with_a_plus() -> None:
    read = parse_request("{gpu='YES'}/nodes=ALL+{gpu='NO'}/core=20")
    assert read == Alternative((one(("host", ALL), where="gpu='YES'"), one(("core", 20), where="gpu='NO'")))


@pytest.mark.parametrize("inside", ["a,b", "a+b", "a/b", "a}b", "a{b", "a=b", "it''s", "é\n"])
def test_signs_of_requests_mean_nothing_within_quotes(inside: str) -> None:
    read = parse_request(f"{{name='{inside}'}}/core=2,walltime=1h")
    assert [group.levels for group in read.groups] == [(Level("core", 2),)]
    assert inside.replace("''", "'") in read.groups[0].where
    assert read.walltime_s == 3600


def test_a_comma_within_braces_is_fine() -> None:
    assert parse_request("{host in ('a', 'b')}/core=2").groups[0].where == "host in ('a', 'b')"


def test_a_walltime_alone_means_one_core() -> None:
    assert parse_request("walltime=2h") == Alternative((one(("core", 1)),), 7200.0)


def test_the_first_slash_may_be_left_out_and_blanks_do_not_matter() -> None:
    given = " { gpu = yes }  / nodes = 2 /\tcore = 4\n + core=1 , walltime = 2h "
    assert parse_request(given) == parse_request("{gpu=yes}nodes=2/core=4+core=1,walltime=2h")


@pytest.mark.parametrize("word", ["nodes", "node", "host"])
def test_nodes_are_hosts(word: str) -> None:
    assert parse_request(f"{word}=3").groups == (one(("host", 3)),)


@pytest.mark.parametrize(
    ("word", "meant"),
    [("ALL", ALL), ("best", BEST), ("Half_Best", HALF_BEST), ("007", 7), ("999999999", 999_999_999)],
)
def test_numbers_may_be_words_in_any_case(word: str, meant: int | str) -> None:
    assert parse_request(f"nodes={word}").groups[0].levels[0].number == meant


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        ("2", 7200),
        ("10:0", 36_000),
        ("1:30:0", 5400),
        ("0:0:1", 1),
        ("12:00:00", 43_200),
        ("1-12:00:00", 129_600),
        ("90s", 90),
        ("1h30m", 5400),
        ("2d", 172_800),
        ("0:90", 5400),
    ],
)
def test_walltimes_are_durations_or_begin_with_hours(time: str, seconds: float) -> None:
    assert parse_request(f"core=1,walltime={time}").walltime_s == seconds


def test_no_walltime_is_none() -> None:
    assert parse_request("core=1").walltime_s is None


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ("", "the request is empty"),
        (" \n", "the request is empty"),
        ("nodes", "expected '=' after level 'nodes' at column 6"),
        ("nodes 2", "expected '=' after level 'nodes' at column 7"),
        ("nodes=", "expected a number after 'nodes=' at column 7, found the end"),
        ("nodes=+2", "expected a number after 'nodes=' at column 7, found '+'"),
        ("nodes==2", "expected a number after 'nodes=' at column 7, found '='"),
        ("nodes=0", "'0' at column 7 is less than 1"),
        ("nodes=-1", "'-1' at column 7 is less than 1"),
        ("nodes=2.5", "'2.5' at column 7 is not a number"),
        ("nodes=two", "'two' at column 7 is not a number"),
        ("nodes=٣", "'٣' at column 7 is not a number"),
        ("nodes=1234567890", "'1234567890' at column 7 is too large"),
        ("nodes=2/", "expected a level at column 9, found the end"),
        ("//nodes=2", "expected a level at column 2, found '/'"),
        ("nodes=2+", "expected a level at column 9, found the end"),
        ("+nodes=2", "expected a level at column 1, found '+'"),
        ("2=nodes", "expected a level at column 1, found '2'"),
        ("{gpu=yes}", "expected a level at column 10, found the end"),
        ("nodes=2 core=1", "expected '/', '+', ',walltime=' or the end at column 9, found 'core'"),
        ("nodes=2{gpu=yes}", "expected '/', '+', ',walltime=' or the end at column 8, found '{'"),
        ("nodes=2,core=1", "expected 'walltime=' after ',' at column 9, found 'core'"),
        ("nodes=2,", "expected 'walltime=' after ',' at column 9, found the end"),
        ("nodes=2/walltime=1h", "'walltime' at column 9 is not a level"),
        ("nodes=2/host=1", "level 'host' at column 9 is there twice"),
        ("nodes=BEST/core=1", "'BEST' at column 7 needs a group of one level"),
        ("nodes=2/core=all", "'ALL' at column 14 needs a group of one level"),
        ("{gpu=yes/nodes=2", "the '{' at column 1 is not closed"),
        ("{gpu='yes}/nodes=2", "the text that begins at column 6 is not closed"),
        ("nodes=1+{}core=1", "the expression at column 10 is empty"),
        ("nodes=1+{gpu=}core=1", "expected a property or a value at column 14, found the end"),
        ("nodes=2,walltime", "expected '=' after 'walltime' at column 17, found the end"),
        ("nodes=2,walltime=", "expected a time after 'walltime=' at column 18, found the end"),
        ("nodes=2,walltime=0", "walltime at column 18: '0' is zero"),
        ("nodes=2,walltime=0s", "walltime at column 18: '0s' is zero"),
        ("nodes=2,walltime=-1", "walltime at column 18: '-1' is negative"),
        ("nodes=2,walltime=1.5", "walltime at column 18: '1.5' has no unit"),
        ("nodes=2,walltime=soon", "walltime at column 18: 'soon' is not a time"),
        ("nodes=2,walltime=999999999", "walltime at column 18: '999999999' is longer than 100 years"),
        ("nodes=2,walltime=1h,walltime=1h", "expected the end after the walltime at column 20, found ','"),
        ("walltime=1h,nodes=2", "expected the end after the walltime at column 12, found ','"),
    ],
)
def test_a_mistake_is_named_with_its_column(request_: str, message: str) -> None:
    refused = refusal(request_)
    assert refused.message == message
    assert refused.hint


@pytest.mark.parametrize(
    ("request_", "message", "hint"),
    [
        ("core=1+nodse=2", "unknown level 'nodse' at column 8", "did you mean 'nodes'?"),
        ("core=1/CORE=1", "unknown level 'CORE' at column 8", "did you mean 'core'?"),
        ("zzz=1", "unknown level 'zzz' at column 1", "levels: core, gpu, host, mem, nodes, switch"),
        ("core=1+{gpuu=yes}core=1", "unknown property 'gpuu' at column 9", "did you mean 'gpu'?"),
        (
            "core=1+{mem='x'}core=1",
            "'mem' is a whole number, but 'x' at column 13 is not",
            "write it like mem >= 64",
        ),
        ("{switch = 5}core=1", "'switch' is text, but '5' at column 11 is not", "quote it: '5'"),
        ("{node='a'}core=1", "unknown property 'node' at column 2", "did you mean 'host'?"),
    ],
)
def test_what_the_site_does_not_have_is_named_with_its_column(request_: str, message: str, hint: str) -> None:
    refused = refusal(request_)
    assert (refused.message, refused.hint) == (message, hint)


def test_every_property_is_a_level_too() -> None:
    given = "/mem=1/nodes=2+gpu=1+switch=1"
    check_alternative(parse_request(given), given, levels=LEVELS, kinds=KINDS)


def test_a_site_without_hosts_has_no_nodes() -> None:
    with pytest.raises(BadInput, match="unknown level 'nodes' at column 1"):
        check_alternative(parse_request("nodes=1"), "nodes=1", levels=("core",), kinds={})


def test_groups_that_were_changed_since_are_checked_as_they_are_now() -> None:
    changed = Alternative((one(("core", 1)), one(("nowhere", 1))))
    with pytest.raises(BadInput, match="unknown level 'nowhere' at column 10"):
        check_alternative(changed, "core=1", levels=LEVELS, kinds=KINDS)
    with pytest.raises(BadInput, match="unknown level 'nowhere' at column 10"):
        check_alternative(changed, "not a request", levels=LEVELS, kinds=KINDS)


def test_a_request_has_an_end() -> None:
    assert "at most 65536" in refusal("core=1" + " " * 70_000).hint
    assert "one too many" in refusal("+".join(["core=1"] * 300)).message
    assert len(parse_request("+".join(["core=1"] * 256)).groups) == 256


def test_what_cannot_be_stored_is_refused() -> None:
    assert refusal("{switch='\ud800'}core=1").message == "the request is not valid Unicode at column 10"


def test_the_longest_request_can_be_read_back() -> None:
    hosts = ",".join(f"'{number}'" for number in range(1000, 10_000))
    read = parse_request(f"{{host in({hosts})}}core=1")
    assert len(read.groups[0].where) > 65_536
    check_alternative(read, "", levels=LEVELS, kinds=KINDS)


names = st.sampled_from(["host", "core", "switch", "gpu", "a_1", "Z"])
several = st.lists(st.builds(Level, names, st.integers(1, 999_999_999)), min_size=1, unique_by=lambda x: x.name)
single = st.builds(lambda name, word: [Level(name, word)], names, st.sampled_from([ALL, BEST, HALF_BEST]))
groups = st.builds(ResourceGroup, (several | single).map(tuple), st.just("") | expressions().map(text))
alternatives = st.builds(
    Alternative,
    st.lists(groups, min_size=1, max_size=4).map(tuple),
    st.none() | st.integers(1, 10**13).map(lambda micros: micros / 1_000_000).filter(lambda s: s <= 10**9),
)


@given(alternatives)
def test_what_is_written_is_read_back(alternative: Alternative) -> None:
    assert parse_request(request_text(alternative)) == alternative
