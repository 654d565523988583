"""Placeholders: a value stays one literal text wherever it stands, as a real shell shows."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rota.core.pipelines.templates import command_template, path_template
from rota.errors import BadInput
from tests.dose import dose

#: Every character that a program can be given, and often those that a shell gives a meaning.
VALUES = st.text(
    st.one_of(
        st.sampled_from("'\"`$\\{}()[]<>|&;#~*?! \n\t=-%@,ab1"),
        st.characters(exclude_characters="\0", exclude_categories=("Cs",)),
    ),
    max_size=12,
)

#: Commands that print their value between brackets, with all that may stand around it.
PLACES = (
    "printf '[%s]' {x}",
    "printf '[%s]' \"{x}\"",
    "printf %s '['{x}']'",
    "printf '%s' \"[{x}]\"",
    "printf '%s' \"[\"{x}']'",
    "v={x}; printf '[%s]' \"$v\"",
    'v="{x}"; printf \'[%s]\' "$v"',
    "# what comes now isn't {x}\nprintf '[%s]' {x} # nor \"this\n",
    "printf '[%s]' \"$(printf '%s.' {x})\" | sed '$ s/\\.]$/]/'",
    "printf '[%s]' \"$(printf '%s.' \"{x}\")\" | sed '$ s/\\.]$/]/'",
    "printf '[%s]' \"$(printf \"%s.\" '{x}')\" | sed '$ s/\\.]$/]/'",
    "a=1; [ $(( (a + 1) * 2 )) = 4 ] && [ ${#a} = 1 ] && { printf '[%s]' {x}; }",
    "d=`echo 5`; printf '[%s]' {x}",
    "e='it'\\''s' f=\\\"; printf '[%s]' {x}",
    "( (printf '[%s]' {x}) )",
    "case x in x) printf '[%s]' {x};; esac",
    "printf '[%s]' {x}; : \"${unset:-$HOME}\" '{x}' \"$(: ')' {x})\"",
    "printf '[%s]' \\\n{x}",
    'set -- {x}; [ $# = 1 ] && printf "[%s]" "$1"',
)


def output(command: str) -> str:
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=False)
    return done.stdout.decode()


@pytest.mark.parametrize("place", PLACES)
@given(value=VALUES)
@dose(8)
@example(value="'; echo pwned; '")
@example(value='"; echo pwned; "')
@example(value="$(echo pwned)`echo pwned`$HOME")
@example(value="\n echo pwned\n")
@example(value="")
def test_a_shell_reads_back_the_very_value(place: str, value: str) -> None:
    assert output(command_template(place).expand({"x": value})) == f"[{value}]"


@given(values=st.lists(VALUES, min_size=2, max_size=4))
@dose(40)
def test_values_side_by_side_are_one_word(values: list[str]) -> None:
    names = {f"v{at}": value for at, value in enumerate(values)}
    command = command_template("printf '[%s]' " + "".join(f"{{{name}}}" for name in names))
    assert output(command.expand(names)) == f"[{''.join(values)}]"


#: Nothing here prints, and nothing writes a file.
PIECES = st.sampled_from(
    "{x}|'|\"|$(|)|(|`|\\|${a}|$a|#| |\n|a|{{x}}|$((|))|<<E|case |{|}|;|&&|$'|~|=|2|>&1 |E\n|${|-|in |esac".split(
        "|"
    )
)
ATTACKS = (
    "';echo pwned;'",
    '";echo pwned;"',
    "$(echo pwned)`echo pwned`",
    "\necho pwned\n",
    ")\necho pwned;(",
    "}\nE\necho pwned\n",
)


@given(pieces=st.lists(PIECES, max_size=12))
@dose(100)
def test_no_value_ever_runs_whatever_stands_around_it(pieces: list[str]) -> None:
    try:
        template = command_template("".join(pieces))
    except BadInput:
        return
    if template.placeholders == ("x",):
        for value in ATTACKS:
            assert "pwned" not in output(template.expand({"x": value}))


@pytest.mark.parametrize(
    ("text", "values", "expanded"),
    [
        ("build {name}", {"name": "app.bst"}, "build app.bst"),
        ("build {name}", {"name": "it's"}, "build 'it'\\''s'"),
        ('say "{name} is up"', {"name": "a b"}, 'say ""\'a b\'" is up"'),
        ("echo {n}>log", {"n": "2"}, "echo '2'>log"),
        ("echo $a{n}", {"n": "b"}, "echo $a'b'"),
        ("ls ~{n}", {"n": "root"}, "ls ~'root'"),
        ("{n} true", {"n": "if"}, "'if' true"),
        ("i{n} true", {"n": "f"}, "i'f' true"),
        ("{n}=1 true", {"n": "PATH"}, "'PATH'=1 true"),
        (
            "awk '{print $1}' ${HOME} {a,b} {1..3} { true; } {}",
            {},
            "awk '{print $1}' ${HOME} {a,b} {1..3} { true; } {}",
        ),
        ("awk '{{print}}' {{name}}", {}, "awk '{print}' {name}"),
    ],
)
def test_braces_and_quotes_come_out_as_expected(text: str, values: dict[str, str], expanded: str) -> None:
    assert command_template(text).expand(values) == expanded


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("cat <<E\n{name}\nE\n", "here-document"),
        ("echo `basename {name}`", "backquotes"),
        ("echo ${a:-{name}}", "${…}"),
        ("echo $(( {name} + 1 ))", "$((…))"),
        ("echo $'\\'' {name}", "$'…'"),
        ('echo "$(case x in x) echo {name};; esac)"', "case"),
    ],
)
def test_a_placeholder_where_nothing_can_be_quoted_is_refused(text: str, named: str) -> None:
    with pytest.raises(BadInput) as caught:
        command_template(text)
    assert named in caught.value.text
    assert caught.value.hint


def test_the_name_of_a_file_is_not_quoted() -> None:
    assert path_template("refs/{name} {{x}}").expand({"name": "it's"}) == "refs/it's {x}"
