"""What is typed and what launchers say: the escape of a terminal, and the words of ssh."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.cli.rsh import parse
from rota.cli.session.channel_bridge import EscapeSequence
from rota.errors import BadInput


@pytest.mark.parametrize(
    ("typed", "passed", "left"),
    [
        (b"~.", b"", True),
        (b"ls\r~.", b"ls\r", True),
        (b"ls\n~.more", b"ls\n", True),
        (b"a~.", b"a~.", False),
        (b"~~.", b"~.", False),
        (b"~x", b"~x", False),
        (b"\r~\r~.", b"\r~\r", True),
        (b"~", b"", False),
    ],
)
def test_the_escape_is_found_at_the_beginning_of_a_line_only(typed: bytes, passed: bytes, left: bool) -> None:
    escape = EscapeSequence()
    assert (escape.passed(typed), escape.left) == (passed, left)


@given(st.lists(st.binary(max_size=5), max_size=8))
def test_it_does_not_matter_in_how_many_pieces_something_is_typed(pieces: list[bytes]) -> None:
    whole, parts = EscapeSequence(), EscapeSequence()
    together = whole.passed(b"".join(pieces))
    apart = b""
    for piece in pieces:
        apart += parts.passed(piece)
        if parts.left:
            break
    assert (together, whole.left) == (apart, parts.left)


@given(st.binary(max_size=40).filter(lambda typed: b"~" not in typed))
def test_what_has_no_escape_in_it_passes_as_it_is(typed: bytes) -> None:
    assert EscapeSequence().passed(typed) == typed


@pytest.mark.parametrize(
    ("words", "host", "text", "stdin"),
    [
        (["n2", "uname", "-n"], "n2", "uname -n", True),
        (["-x", "-q", "n2", "true"], "n2", "true", True),
        (["-l", "me", "-p", "22", "n2", "true"], "n2", "true", True),
        (["-oBatchMode=yes", "-o", "A=b", "me@n2", "true"], "n2", "true", True),
        (["-xn", "n2", "true"], "n2", "true", False),
        (["-xl", "me", "n2", "true"], "n2", "true", True),
        (["--", "n2", "-x"], "n2", "-x", True),
        (["n2", "PATH=/opt/bin:$PATH ; export PATH ;", "orted", "-mca", "ess", '"env"'], "n2",
         'PATH=/opt/bin:$PATH ; export PATH ; orted -mca ess "env"', True),
    ],
)  # fmt: skip
def test_the_words_of_ssh_are_understood(words: list[str], host: str, text: str, stdin: bool) -> None:
    asked = parse(words)
    assert (asked.host, asked.text, asked.stdin) == (host, text, stdin)


@pytest.mark.parametrize("words", [[], ["-x"], ["-l", "me"]])
def test_a_host_is_needed(words: list[str]) -> None:
    with pytest.raises(BadInput, match="no host"):
        parse(words)
