"""Messages and descriptors over a socket, and what no peer sends."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import pytest

from rota.launcher import messages as m
from rota.launcher.frames import MOST, Broken, Channel


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    yield one, other
    one.close()
    other.close()


def _agent(sock: socket.socket) -> Channel[m.FromLauncher]:
    return Channel(sock, m.decode_from_launcher, takes_fds=True)


def _launcher(sock: socket.socket) -> Channel[m.FromAgent]:
    return Channel(sock, m.decode_from_agent, takes_fds=False)


def test_descriptors_arrive_with_the_message_that_names_them(pair: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = _launcher(pair[0]), _agent(pair[1])
    read, write = os.pipe()
    sender.send(m.Done())
    sender.send(m.Started(7, 1, 1), [read])
    sender.send(m.Started(8, 1, 2), [write, write])
    heard: list[m.FromLauncher] = []
    while len(heard) < 3:
        heard += receiver.receive()
    assert [type(each) for each in heard] == [m.Done, m.Started, m.Started]
    (reading,) = receiver.take_fds(1)
    writing = receiver.take_fds(2)
    os.write(writing[1], b"through")
    assert os.read(reading, 100) == b"through"
    assert not any(os.get_inheritable(fd) for fd in (reading, *writing))
    for fd in (read, write, reading, *writing):
        os.close(fd)


def test_what_the_socket_does_not_take_is_sent_later_with_its_descriptors(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    pair[0].setblocking(False)
    sender, receiver = _launcher(pair[0]), _agent(pair[1])
    large = m.NotStarted(True, "x" * (1 << 20))
    sender.send(large)
    read, write = os.pipe()
    sender.send(m.Started(7, 1, 2), [read, write])
    os.close(read)
    os.close(write)
    assert sender.unsent
    heard: list[m.FromLauncher] = []
    while len(heard) < 2:
        sender.flush()
        heard += receiver.receive()
    assert heard[0] == large
    reading, writing = receiver.take_fds(2)
    os.write(writing, b"through")
    assert os.read(reading, 100) == b"through"
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(
    "sent",
    [
        (MOST + 1).to_bytes(4, "big"),
        b"\xff\xff\xff\xff",
        b"\0\0\0\3abc",
        b"\0\0\0\0",
        b"\0\0\0\1\x90",
        b"\0\0\0\5\x91\xa3abc",
        b"\0\0\2\0" + b"\x91" * 512,
    ],
)
def test_what_is_no_message_breaks_the_connection(sent: bytes, pair: tuple[socket.socket, socket.socket]) -> None:
    pair[0].sendall(sent)
    with pytest.raises(Broken):
        _launcher(pair[1]).receive()


def test_a_message_that_is_too_large_is_not_sent(pair: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(Broken):
        _agent(pair[0]).send(m.Note((1, 1, 1), bytes(MOST)))


def test_a_launcher_takes_no_descriptors(pair: tuple[socket.socket, socket.socket]) -> None:
    before = len(os.listdir("/proc/self/fd"))
    sender = threading.Thread(target=lambda: socket.send_fds(pair[0], [b"\0\0\0\0"], [0, 1, 2]))
    sender.start()
    with pytest.raises(Broken):
        _launcher(pair[1]).receive()
    sender.join()
    assert len(os.listdir("/proc/self/fd")) == before


def test_more_descriptors_than_messages_name_break_the_connection(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    receiver = _agent(pair[1])

    def flood() -> None:
        for _ in range(100):
            socket.send_fds(pair[0], [b"\0"], [0] * 60)
            receiver.receive()

    with pytest.raises(Broken):
        flood()
    receiver.close()
