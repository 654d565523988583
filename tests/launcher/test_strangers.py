"""Who is not let in, and what garbage does to the launcher: nothing."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from rota.launcher import messages as m
from rota.launcher.door import secret_of
from rota.launcher.procfs import boot_id
from tests.launcher.desk import Desk

_NOBODY = 65534


@pytest.fixture
def stranger(shared_desk: Desk, shared_place: Path) -> Iterator[socket.socket]:
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(60)
    sock.connect(str(shared_place / "socket"))
    yield sock
    sock.close()


def _frame(message: object) -> bytes:
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(4, "big") + body


def _closed(sock: socket.socket) -> bytes:
    """What it said before it closed the connection."""
    said = b""
    try:
        while data := sock.recv(65536):
            said += data
    except ConnectionResetError:
        pass
    return said


def _attach(place: Path, **changes: object) -> m.Attach:
    right = m.Attach(m.VERSION, boot_id(), str(place), 9, secret_of(str(place)))
    return msgspec.structs.replace(right, **changes)


def _unharmed(desk: Desk) -> None:
    assert desk.run("echo unharmed", (9, 1, 9)) == (0, b"unharmed\n", b"")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"secret": b""}, b"secret"),
        ({"secret": bytes(32)}, b"secret"),
        ({"boot_id": "another"}, b"boot"),
        ({"directory": "/tmp"}, b"directory"),
        ({"version": 99}, b"version"),
        ({"epoch": 1}, b"epoch"),
    ],
)
def test_each_part_of_the_proof_is_needed(
    changes: dict[str, object],
    why: bytes,
    shared_desk: Desk,
    shared_place: Path,
    stranger: socket.socket,
) -> None:
    stranger.sendall(_frame(_attach(shared_place, **changes)))
    assert why in _closed(stranger)
    _unharmed(shared_desk)


def test_garbage_huge_lengths_and_wrong_first_messages_are_refused(shared_desk: Desk, shared_place: Path) -> None:
    desk, place = shared_desk, shared_place
    for sent in (
        os.urandom(100),
        b"\xff\xff\xff\xff",
        b"\0\0\x10\1" + bytes(4097),
        _frame(m.Leave(kill=True)),
        _frame(_attach(place)) + _frame(m.Leave(kill=True)),
        _frame(["attach"]),
        _frame(["attach", "x", 1, 2, 3, 4]),
        b"",
    ):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(60)
            sock.connect(str(place / "socket"))
            sock.sendall(sent)
            sock.shutdown(socket.SHUT_WR)
            assert b"welcome" not in _closed(sock).replace(b"unwelcome", b"")
    _unharmed(desk)


def test_many_silent_connections_keep_no_runner_out(desk: Desk, place: Path) -> None:
    silent = []
    for _ in range(30):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(60)
        sock.connect(str(place / "socket"))
        silent.append(sock)
        _unharmed(desk)
    second = Desk.again(place, 2)
    _unharmed(second)
    for sock in silent:
        sock.close()
    desk.launcher.fenced = True
    second.end()


def test_an_agent_that_sends_garbage_is_lost_and_the_jobs_are_not(desk: Desk, place: Path) -> None:
    pid = desk.start("sleep 1000").pid
    desk.launcher.own = False  # it would kill the launcher
    desk.launcher._connection.sock.sendall(_frame(["start", 1, 2, 3]))
    desk.listen(lambda: desk.launcher.dead)
    second = Desk.again(place, 2)
    assert second.adopted[1, 1, 1].processes[0].pid == pid
    assert second.adopted[1, 1, 1].processes[0].status is None
    second.end()


@pytest.mark.skipif(os.geteuid() != 0, reason="takes another user")
def test_another_user_is_not_let_in_whatever_it_knows(shared_desk: Desk, shared_place: Path) -> None:
    desk, place = shared_desk, shared_place
    assert place.stat().st_mode & 0o777 == 0o700
    assert (place / "secret").stat().st_mode & 0o777 == 0o600
    attach = _frame(_attach(place))
    place.parent.chmod(0o755)
    place.chmod(0o755)
    (place / "socket").chmod(0o666)
    child = os.fork()
    if not child:
        try:
            os.setgid(_NOBODY)
            os.setuid(_NOBODY)
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(60)
            sock.connect(str(place / "socket"))
            try:
                sock.sendall(attach)
            except OSError:
                pass
            os._exit(0 if not _closed(sock) else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    _unharmed(desk)
