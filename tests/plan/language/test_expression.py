"""Property expressions: read, refused where they are wrong, and true exactly where a database says so too."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadInput
from rota.plan.language.expression import Expression, Kind, Value, check, matches, names, parse, text
from rota.plan.language.expression_tree import (
    Both,
    Comparison,
    Constant,
    Either,
    Membership,
    Negation,
    Presence,
    Property,
    Range,
)
from tests.plan.language.expressions import KINDS, SIGNS, expressions

SITE: dict[str, Kind] = {"gpu": "yesno", "ib": "yesno", "mem": "integer", "disk": "integer", "switch": "text"}
FAT: dict[str, Value] = {"gpu": True, "ib": False, "mem": 512, "disk": 100, "switch": "sw1"}


def holds(expression: str, values: Mapping[str, Value] = FAT) -> bool:
    tree = parse(expression)
    check(tree, SITE)
    return matches(tree, values)


def refusal(expression: str) -> BadInput:
    with pytest.raises(BadInput) as refused:
        check(parse(expression), SITE)
    return refused.value


@pytest.mark.parametrize(
    "expression",
    [
        "gpu = yes",
        "gpu='YES'",
        'gpu="Yes"',
        "gpu == TRUE",
        "gpu != 'no'",
        "gpu <> false",
        "ib = 'NO'",
        "mem = 512",
        "mem = '512'",
        "mem = +512",
        "mem > -1",
        "mem >= 512 and mem <= 512",
        "mem < 513 AND NOT mem < 512",
        "500 < mem",
        "'sw1' = switch",
        "mem in (1, '512', 3)",
        "mem not in (1, 2)",
        "gpu in ('no', yes)",
        "switch in ('sw1')",
        "switch like 'sw_'",
        "switch LIKE '%1'",
        "switch not like 's'",
        "switch < 'sw2'",
        "mem is not null",
        "not mem IS NULL",
        "mem between 500 and 600",
        "mem between 512 and '512'",
        "mem Not Between 1 and 511",
        "mem not between 600 and 500",
        "mem between disk and 512",
        "switch between 'sw0' and 'sw1'",
        "mem between 1 and 600 and disk = 100",
        "not mem between 1 and 2 or gpu = no",
        "mem > disk",
        "gpu != ib",
        "gpu = no or ib = no and mem = 512",
        "not (gpu = no or ib = yes)",
        "not not gpu = yes",
        "((gpu=yes)and(mem>64))or switch='x'",
    ],
)
def test_what_holds(expression: str) -> None:
    assert holds(expression)
    assert not holds(f"not ({expression})")


def test_and_binds_more_than_or() -> None:
    assert parse("a=1 or b=2 and c=3") == parse("a=1 or (b=2 and c=3)")
    assert parse("a=1 or b=2 and c=3") != parse("(a=1 or b=2) and c=3")


def test_not_binds_more_than_and() -> None:
    assert parse("not a=1 and b=2") == parse("(not a=1) and b=2")


@pytest.mark.parametrize("sign", ["=", "!=", "<", "<=", ">", ">="])
def test_what_is_lacking_satisfies_no_comparison(sign: str) -> None:
    assert not holds(f"mem {sign} 1", {})
    assert not holds(f"mem {sign} disk", {"mem": 1})
    assert not holds(f"mem {sign} disk", {"disk": 1})
    assert holds(f"not mem {sign} 1", {})


def test_what_is_lacking_is_neither_in_nor_like_nor_their_opposite() -> None:
    for expression in ("mem in (1)", "mem not in (1)", "switch like '%'", "switch not like 'a'"):
        assert not holds(expression, {})


def test_what_is_lacking_is_null() -> None:
    assert holds("mem is null", {})
    assert not holds("mem is not null", {})
    assert holds("mem is null or mem >= 64", {})
    assert holds("mem is null or mem >= 64", {"mem": 64})


def test_what_is_lacking_is_neither_between_nor_outside_unless_one_bound_is_known_to_be_crossed() -> None:
    assert not holds("mem between 1 and 2", {})
    assert not holds("mem not between 1 and 2", {})
    assert not holds("mem between 1 and disk", {"mem": 5})
    assert not holds("mem not between 1 and disk", {"mem": 5})
    assert holds("mem not between 1 and disk", {"mem": 0})


def test_properties_may_be_called_as_words_that_only_stand_where_an_operator_does() -> None:
    called: dict[str, Value] = {"is": 1, "null": 2, "between": 3}
    for expression in ("is = 1", "null is not null", "between between is and 9", "is between 0 and null"):
        assert matches(parse(expression), called)
        assert matches(parse(text(parse(expression))), called)


def test_a_value_of_another_kind_than_was_checked_never_matches() -> None:
    assert not matches(parse("mem != 1"), {"mem": "text"})
    assert not matches(parse("gpu = 1"), {"gpu": True})
    assert not matches(parse("mem = yes"), {"mem": 1})
    assert not matches(parse("gpu < yes"), {"gpu": False})
    assert not matches(parse("mem in (yes)"), {"mem": 1})


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("  a==1 ", "a=1"),
        ("a<>'x'", "a!='x'"),
        ('a="x"', "a='x'"),
        ('a="it\'s"', 'a="it\'s"'),
        ("a='it''s'", 'a="it\'s"'),
        ("a=TRUE", "a=yes"),
        ("a=No", "a=no"),
        ("a=+07", "a=7"),
        ("a=-0", "a=0"),
        ("5<a", "a>5"),
        ("((a=1) AND (b=2 and(c=3)))", "a=1 and b=2 and c=3"),
        ("a=1 or(b=2 or c=3)", "a=1 or b=2 or c=3"),
        ("(a=1 or b=2) and c=3", "(a=1 or b=2) and c=3"),
        ("NOT(a=1)", "not a=1"),
        ("not (a=1 and b=2)", "not (a=1 and b=2)"),
        ("a NOT IN(1,2)", "a not in (1, 2)"),
        ("a Like'x%'", "a like 'x%'"),
        ("a IS  Null", "a is null"),
        ("a is NOT null", "a is not null"),
        ("a Between'x'AND'y'", "a between 'x' and 'y'"),
        ("a not between b and 5 and c=1", "a not between b and 5 and c=1"),
    ],
)
def test_the_same_expression_has_the_same_text(given: str, canonical: str) -> None:
    assert text(parse(given)) == canonical
    assert text(parse(canonical)) == canonical


def test_names_are_the_properties_it_speaks_of() -> None:
    assert names(parse("a=1 and (not b=c or d in ('x') or e like 'f')")) == set("abcde")
    assert names(parse("a is null or b between c and d")) == set("abcd")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "the expression at column 1 is empty"),
        ("  ", "the expression at column 3 is empty"),
        ("gpu", "expected a comparison after 'gpu' at column 4, found the end"),
        ("gpu yes", "expected a comparison after 'gpu' at column 5, found 'yes'"),
        ("gpu =", "expected a property or a value at column 6, found the end"),
        ("= 5", "expected a property at column 1, found '='"),
        ("and gpu=yes", "expected a property at column 1, found 'and'"),
        ("gpu=yes and", "expected a property at column 12, found the end"),
        ("gpu=yes mem=1", "expected 'and', 'or' or the end at column 9, found 'mem'"),
        ("1 < mem < 5", "expected 'and', 'or' or the end at column 9, found '<'"),
        ("(gpu=yes", "expected 'and', 'or' or ')' at column 9, found the end"),
        ("gpu=yes)", "expected 'and', 'or' or the end at column 8, found ')'"),
        ("()", "expected a property at column 2, found ')'"),
        ("1 = 1", "two values are compared at column 3"),
        ("1 in (1)", "expected a comparison after '1' at column 3, found 'in'"),
        ("mem in 5", "expected '(' after 'in' at column 8, found '5'"),
        ("mem in ()", "expected a value at column 9, found ')'"),
        ("mem in (1,)", "expected a value at column 11, found ')'"),
        ("mem in (1 2)", "expected ',' or ')' at column 11, found '2'"),
        ("mem in (disk)", "expected a value at column 9, found 'disk'"),
        ("mem not 5", "expected 'in', 'like' or 'between' after 'not' at column 9, found '5'"),
        ("mem is 5", "expected 'null' or 'not null' after 'is' at column 8, found '5'"),
        ("mem is not", "expected 'null' after 'is not' at column 11, found the end"),
        ("mem not is null", "expected 'in', 'like' or 'between' after 'not' at column 9, found 'is'"),
        ("5 is null", "expected a comparison after '5' at column 3, found 'is'"),
        ("mem between 1", "expected 'and' after the lower bound at column 14, found the end"),
        ("mem between 1 or 2", "expected 'and' after the lower bound at column 15, found 'or'"),
        ("mem between and 2", "expected a property or a value at column 13, found 'and'"),
        ("mem between 1 and", "expected a property or a value at column 18, found the end"),
        ("switch like switch", "expected a quoted text after 'like' at column 13, found 'switch'"),
        ("switch like 5", "expected a quoted text after 'like' at column 13, found '5'"),
        ("switch = 'sw1", "the text that begins at column 10 is not closed"),
        ("switch = 'sw1''", "the text that begins at column 10 is not closed"),
        ("mem = 1.5", "'1.5' at column 7 is not a whole number"),
        ("mem = 64G", "'64G' at column 7 is not a whole number"),
        ("mem = 1234567890123456789", "'1234567890123456789' at column 7 is too large"),
        ("mem = 5;", "unexpected ';' at column 8"),
        ("mem = 5\x00", "unexpected '\\x00' at column 8"),
        ("switch = ‘sw1’", "unexpected '‘' at column 10"),
        ("größe = 5", "'ö' at column 3 is not a letter a name may have"),
        ("walltime = 5", "'walltime' at column 1 is not a property"),
    ],
)
def test_a_mistake_is_named_with_its_column(expression: str, message: str) -> None:
    refused = refusal(expression)
    assert refused.message == message
    assert refused.hint


@pytest.mark.parametrize(
    ("expression", "message", "hint"),
    [
        ("gpu=yes and memm>5", "unknown property 'memm' at column 13", "did you mean 'mem'?"),
        ("MEM>5", "unknown property 'MEM' at column 1", "did you mean 'mem'?"),
        ("zzz in (5)", "unknown property 'zzz' at column 1", "properties: disk, gpu, ib, mem, switch"),
        ("switch = sw1", "unknown property 'sw1' at column 10", "quote it: 'sw1'"),
        ("mem = 'x'", "'mem' is a whole number, but 'x' at column 7 is not", "mem >= 64"),
        ("mem = yes", "'mem' is a whole number, but 'yes' at column 7 is not", "mem >= 64"),
        ("gpu = 1", "'gpu' is yes or no, but '1' at column 7 is not", "gpu = yes"),
        ("gpu in (yes, 'maybe')", "'gpu' is yes or no, but 'maybe' at column 14 is not", "gpu = yes"),
        ("switch = 5", "'switch' is text, but '5' at column 10 is not", "quote it: '5'"),
        ("switch = yes", "'switch' is text, but 'yes' at column 10 is not", "quote it: 'yes'"),
        ("gpu < yes", "'gpu' is yes or no, '<' at column 5 is not for those", "gpu = yes"),
        ("mem like '5%'", "'mem' is a whole number, 'like' at column 5 is for text", "mem >= 64"),
        ("not (mem not like '5%')", "'mem' is a whole number, 'like' at column 14 is for text", "mem >= 64"),
        ("gpu between no and yes", "'gpu' is yes or no, 'between' at column 5 is not for those", "gpu = yes"),
        ("mem between 1 and 'x'", "'mem' is a whole number, but 'x' at column 19 is not", "mem >= 64"),
        ("mem between switch and 2", "'mem' is a whole number, but 'switch' at column 13 is text", "same kind"),
        ("memm is null", "unknown property 'memm' at column 1", "did you mean 'mem'?"),
        ("mem = null", "unknown property 'null' at column 7", "gpu is null"),
        ("mem = switch", "'mem' is a whole number, but 'switch' at column 7 is text", "same kind"),
    ],
)
def test_what_cannot_be_compared_is_named_with_its_fix(expression: str, message: str, hint: str) -> None:
    refused = refusal(expression)
    assert refused.message == message
    assert hint in refused.hint


def test_a_long_list_of_properties_is_not_recited() -> None:
    with pytest.raises(BadInput) as refused:
        check(parse("zzz=1"), {f"p{number}": "integer" for number in range(100)})
    assert refused.value.hint == "there are 100 properties, such as p0, p1, p10"


def test_nesting_has_an_end() -> None:
    assert parse("(" * 50 + "a=1" + ")" * 50) == parse("a=1")
    assert "nested deeper than 50" in refusal("(" * 51 + "a=1" + ")" * 51).message
    assert "nested deeper than 50" in refusal("not " * 51 + "a=1").message


def test_comparisons_have_an_end() -> None:
    assert len(names(parse(" or ".join(f"a{number}=1" for number in range(1000))))) == 1000
    assert "one too many" in refusal(" or ".join(["a=1"] * 1001)).message


def test_no_pattern_takes_long() -> None:
    tree = parse(f"switch like '{'%a' * 1000}%b'")
    assert not matches(tree, {"switch": "a" * 10_000})


@given(expressions())
def test_what_is_written_is_read_back(expression: Expression) -> None:
    assert parse(text(expression)) == expression


# A database decides the same, once what is lacking is no match.

words = st.text("ab_%Y'", max_size=4)
numbers = st.integers(-2, 3)


def _constants(kind: Kind) -> st.SearchStrategy[Constant]:
    if kind == "text":
        return words.map(lambda word: Constant("text", word))
    if kind == "integer":
        return numbers.map(lambda n: Constant("integer", n)) | numbers.map(lambda n: Constant("text", str(n)))
    spellings = st.sampled_from(["YES", "yes", "No", "TRUE", "false"]).map(lambda word: Constant("text", word))
    return spellings | st.booleans().map(lambda value: Constant("yesno", value))


def _leaf(name: str) -> st.SearchStrategy[Expression]:
    kind = KINDS[name]
    same = st.sampled_from([other for other in KINDS if KINDS[other] == kind]).map(Property)
    signs = ["=", "!="] if kind == "yesno" else SIGNS
    leaves: st.SearchStrategy[Expression] = st.builds(
        Comparison, st.just(Property(name)), st.sampled_from(signs), _constants(kind) | same
    ) | st.builds(
        Membership,
        st.just(Property(name)),
        st.lists(_constants(kind), min_size=1, max_size=3).map(tuple),
        inside=st.booleans(),
    )
    leaves |= st.builds(Presence, st.just(Property(name)), st.booleans())
    if kind != "yesno":
        bounds = _constants(kind) | same
        leaves |= st.builds(Range, st.just(Property(name)), bounds, bounds, st.booleans())
    if kind == "text":
        likes = st.sampled_from(["like", "not like"])
        leaves |= st.builds(Comparison, st.just(Property(name)), likes, _constants(kind))
    return leaves


sound = st.recursive(
    st.sampled_from(sorted(KINDS)).flatmap(_leaf),
    lambda inner: (
        inner.map(Negation)
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: Both(tuple(parts)))
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: Either(tuple(parts)))
    ),
    max_leaves=6,
)
resources = st.fixed_dictionaries(
    {},
    optional={
        name: {"text": words, "integer": numbers, "yesno": st.booleans()}[kind] for name, kind in KINDS.items()
    },
)


def _sql(expression: Expression) -> str:
    match expression:
        case Comparison(left, sign, right):
            return f"coalesce({left.name} {sign} {_sql_operand(right, KINDS[left.name])}, 0)"
        case Membership(left, choices, inside):
            listed = ", ".join(_sql_operand(choice, KINDS[left.name]) for choice in choices)
            return f"coalesce({left.name} {'in' if inside else 'not in'} ({listed}), 0)"
        case Presence(left, present):
            return f"({left.name} is {'not null' if present else 'null'})"
        case Range(left, low, high, inside):
            bounds = " and ".join(_sql_operand(each, KINDS[left.name]) for each in (low, high))
            return f"coalesce({left.name} {'' if inside else 'not '}between {bounds}, 0)"
        case Negation(part):
            return f"(not {_sql(part)})"
        case Both(parts):
            return f"({' and '.join(map(_sql, parts))})"
        case Either(parts):
            return f"({' or '.join(map(_sql, parts))})"


def _sql_operand(operand: Constant | Property, kind: Kind) -> str:
    if isinstance(operand, Property):
        return operand.name
    word = str(operand.value)
    if kind == "yesno":
        return "1" if word.lower() in ("yes", "true") else "0"
    return str(int(word)) if kind == "integer" else "'" + word.replace("'", "''") + "'"


@pytest.fixture(scope="module")
def database() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    columns = ", ".join(f"{name} {'text' if kind == 'text' else 'integer'}" for name, kind in KINDS.items())
    connection.execute(f"create table resource ({columns})")
    connection.execute("pragma case_sensitive_like = on")
    return connection


@given(sound, resources)
def test_a_database_agrees(
    database: sqlite3.Connection, expression: Expression, resource: dict[str, Value]
) -> None:
    check(parse(text(expression)), KINDS)
    database.execute("delete from resource")
    database.execute("insert into resource values (?, ?, ?, ?, ?, ?)", [resource.get(name) for name in KINDS])
    found = database.execute(f"select count(*) from resource where {_sql(expression)}").fetchone()[0]
    assert matches(expression, resource) is bool(found)
    assert matches(parse(text(expression)), resource) is bool(found)
