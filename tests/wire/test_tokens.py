"""Tokens: only hashes are kept, every change is durable, and files others may read are refused."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadInput, Denied, EnvironmentFault, NotFound
from rota.wire import private_files, tokens
from rota.wire.permissions import ROLES
from rota.wire.tokens import TokenBook

NOW = 1_800_000_000.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens" / "tokens.json"


@pytest.fixture
def book(path: Path) -> TokenBook:
    return TokenBook.open(path)


@pytest.mark.parametrize("role", ROLES)
def test_a_token_says_its_role_and_is_long_and_random(book: TokenBook, role: str) -> None:
    token = book.create("a", role, now=NOW)
    assert re.fullmatch(rf"rota_{role}_[A-Za-z0-9_-]{{43}}", token)
    assert book.create("b", role, now=NOW) != token


def test_only_the_hash_is_kept(book: TokenBook, path: Path) -> None:
    token = book.create("laptop", "user", now=NOW)
    text = path.read_text()
    assert token not in text
    assert token.split("_", 2)[2] not in text
    assert hashlib.sha256(token.encode()).hexdigest() in text


def test_a_token_is_known_again_after_a_restart(book: TokenBook, path: Path) -> None:
    token = book.create("laptop", "user", now=NOW)
    record = TokenBook.open(path).verify(token, NOW)
    assert record is not None
    assert (record.name, record.role, record.created_at) == ("laptop", "user", NOW)


def test_the_role_is_that_of_the_record_not_of_the_text(book: TokenBook) -> None:
    token = book.create("laptop", "user", now=NOW)
    assert book.verify(token.replace("rota_user_", "rota_admin_"), NOW) is None


def test_a_token_ends_when_it_was_said_to(book: TokenBook) -> None:
    token = book.create("guest", "user", NOW + 60, now=NOW)
    assert book.verify(token, NOW + 59.9) is not None
    assert book.verify(token, NOW + 60) is None
    assert [record.name for record in book.list()] == ["guest"]


@pytest.mark.parametrize("when", [NOW, NOW - 1, float("nan")])
def test_a_token_cannot_be_made_for_the_past(book: TokenBook, when: float) -> None:
    with pytest.raises(BadInput):
        book.create("guest", "user", when, now=NOW)


def test_a_removed_token_is_worthless_at_once_and_for_ever(book: TokenBook, path: Path) -> None:
    token = book.create("laptop", "user", now=NOW)
    other = book.create("desk", "user", now=NOW)
    book.remove("laptop")
    for each in (book, TokenBook.open(path)):
        assert each.verify(token, NOW) is None
        assert each.verify(other, NOW) is not None
    with pytest.raises(NotFound):
        book.remove("laptop")


def test_names_are_unique(book: TokenBook) -> None:
    book.create("laptop", "user", now=NOW)
    with pytest.raises(BadInput, match="already"):
        book.create("laptop", "admin", now=NOW)
    assert len(book.list()) == 1


@pytest.mark.parametrize("name", ["", "a b", "../x", "a\n", "x" * 65, ".x", "é", "\x1b[31m", "\udc80"])
def test_names_that_could_do_harm_are_refused(book: TokenBook, path: Path, name: str) -> None:
    with pytest.raises(BadInput):
        book.create(name, "user", now=NOW)
    assert not path.exists()


def test_roles_are_only_those_there_are(book: TokenBook) -> None:
    with pytest.raises(BadInput, match="user, admin, runner, gateway"):
        book.create("x", "root", now=NOW)


@given(st.text(max_size=200))
def test_no_other_text_is_a_token(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    book = TokenBook(tmp_path_factory.getbasetemp() / "unused", [])
    assert book.verify(text, NOW) is None


@given(st.text(st.characters(), max_size=60))
def test_text_that_resembles_a_token_is_none(text: str) -> None:
    token = "rota_user_" + "A" * 43
    record = tokens.TokenRecord(
        name="a", role="user", sha256=hashlib.sha256(token.encode()).hexdigest(), created_at=NOW
    )
    book = TokenBook(Path("unused"), [record])
    assert book.verify(token, NOW) is record
    assert (book.verify(text, NOW) is not None) == (text == token)
    assert book.verify(token + "\udc80", NOW) is None
    assert book.verify(token[:-1], NOW) is None
    assert book.verify(token + "\0", NOW) is None


def test_every_record_is_compared_whichever_fits(book: TokenBook, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [book.create(f"t{n}", "user", now=NOW) for n in range(5)]
    compared: list[str] = []

    def spy(a: str, b: str) -> bool:
        compared.append(a)
        return a == b

    monkeypatch.setattr(tokens.hmac, "compare_digest", spy)
    for token in [*made, "nonsense"]:
        compared.clear()
        book.verify(token, NOW)
        assert len(compared) == 5


# ------------------------------------------------------------------ files


def test_files_are_private_whatever_the_umask(path: Path) -> None:
    old = os.umask(0)
    try:
        tokens.open_home(path.parent, now=NOW)
    finally:
        os.umask(old)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(["tokens.json", "admin.token", "runner.token", "gateway.token"], 0o600)


def test_the_owner_gets_a_token_for_each_part_of_the_deployment(path: Path) -> None:
    book = tokens.open_home(path.parent, now=NOW)
    for role in ("admin", "runner", "gateway"):
        record = book.verify(tokens.read_token(path.parent / f"{role}.token"), NOW)
        assert record is not None
        assert record.role == role


def test_a_second_start_keeps_the_tokens(path: Path) -> None:
    tokens.open_home(path.parent, now=NOW)
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    tokens.open_home(path.parent, now=NOW + 1e9)
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


@pytest.mark.parametrize("damage", ["remove", "empty", "foreign", "swapped"])
def test_an_own_token_that_does_not_fit_is_replaced_and_the_old_one_is_worthless(path: Path, damage: str) -> None:
    tokens.open_home(path.parent, now=NOW)
    admin, runner = path.parent / "admin.token", path.parent / "runner.token"
    old = tokens.read_token(admin)
    if damage == "remove":
        admin.unlink()
    elif damage == "empty":
        admin.write_bytes(b"")
    elif damage == "foreign":
        admin.write_bytes(b"\xff\xfe rota_admin_nonsense")
    else:
        admin.write_bytes(runner.read_bytes())
    book = tokens.open_home(path.parent, now=NOW)
    new = tokens.read_token(admin)
    assert book.verify(old, NOW) is None
    record = book.verify(new, NOW)
    assert record is not None
    assert record.role == "admin"
    assert sorted(each.name for each in book.list()) == ["own-admin", "own-gateway", "own-runner"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o660, 0o644, 0o777])
def test_a_file_that_others_may_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "t"
    private_files.write(file, b"rota_user_x\n")
    assert tokens.read_token(file) == "rota_user_x"
    file.chmod(mode)
    with pytest.raises(Denied) as caught:
        tokens.read_token(file)
    assert caught.value.hint == f"chmod 600 {file}"


def test_an_open_book_is_refused(book: TokenBook, path: Path) -> None:
    book.create("laptop", "user", now=NOW)
    path.chmod(0o644)
    with pytest.raises(Denied):
        TokenBook.open(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "t"
    private_files.write(file, b"rota_user_x\n")
    os.chown(file, 65534, 65534)
    with pytest.raises(Denied, match="another user"):
        tokens.read_token(file)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"two words", b"rota_user_a rota_user_b", b"\xff\xfe", b"password"]
)
def test_a_file_without_a_token_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "t"
    private_files.write(file, content)
    with pytest.raises(Denied, match="does not hold a token"):
        tokens.read_token(file)


def test_a_missing_token_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(Denied, match="rota manager token add"):
        tokens.read_token(tmp_path / "none")


def test_a_fifo_or_a_directory_in_its_place_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo", 0o600)
    for file in (tmp_path / "fifo", tmp_path):
        with pytest.raises(EnvironmentFault):
            tokens.read_token(file)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"version": 1}',
        b'{"version": 2, "tokens": []}',
        b'{"version": 1, "tokens": [{"name": "x", "role": "god", "sha256": "", "created_at": 0}]}',
    ],
)
def test_a_damaged_or_newer_book_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    private_files.make_directory(path.parent)
    private_files.write(path, content)
    with pytest.raises(EnvironmentFault) as caught:
        TokenBook.open(path)
    assert caught.value.hint
    assert path.read_bytes() == content


def test_a_write_that_fails_leaves_the_book_as_it_was(
    book: TokenBook, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = book.create("laptop", "user", now=NOW)
    before = path.read_bytes()

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(private_files.os, "fsync", fail)
    with pytest.raises(EnvironmentFault, match="No space left"):
        book.create("second", "user", now=NOW)
    with pytest.raises(EnvironmentFault):
        book.remove("laptop")
    assert path.read_bytes() == before
    assert book.verify(token, NOW) is not None
    assert len(book.list()) == 1


def test_a_planted_link_is_not_followed(book: TokenBook, path: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (path.parent / ".tokens.json.new").symlink_to(victim)
    with pytest.raises(EnvironmentFault):
        book.create("laptop", "user", now=NOW)
    assert victim.read_text() == "precious"
