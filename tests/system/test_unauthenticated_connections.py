"""Hundreds of connections that never log in: bounded in number, and no hindrance to those who do."""

from __future__ import annotations

import json
import resource
import select
import socket
import ssl
from collections.abc import Iterator

import pytest

import rota
from rota.home import Home
from tests.deployment import Deployment, deployment

_SILENT = 700
_MUTE = 300


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    with deployment(tmp_path_factory.mktemp("site"), cores="2") as made:
        made.start()
        made.ok("manager", "token", "add", "ann", "--out", str(made.work / "ann"))
        yield made
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _address(site: Deployment) -> tuple[str, int]:
    host, _, port = json.loads((site.home / "manager.json").read_bytes())["address"].rpartition(":")
    return host, int(port)


def _logs_in(site: Deployment) -> None:
    """By TLS with a token: by then everybody who came before was accepted, too."""
    host, port = _address(site)
    token = (site.work / "ann").read_text().strip()
    with rota.connect(site.home, address=f"{host}:{port}", token=token) as client:
        assert client.status().counts == {}


def _hung_up_on(connections: list[socket.socket]) -> int:
    poll = select.poll()
    for each in connections:
        poll.register(each, select.POLLIN | select.POLLRDHUP)
    gone = select.POLLRDHUP | select.POLLHUP | select.POLLERR
    return sum(1 for _, event in poll.poll(0) if event & gone)


def test_silent_ones_make_room_for_others(site: Deployment) -> None:
    silent = [socket.create_connection(_address(site), timeout=20) for _ in range(_SILENT)]
    try:
        _logs_in(site)
        assert _hung_up_on(silent) >= _SILENT - 512
        assert _hung_up_on(silent[-100:]) == 0
        assert site.ok("status") == "no jobs\n"
    finally:
        for each in silent:
            each.close()


def test_those_who_only_shake_hands_make_room_too(site: Deployment) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    mute = [
        context.wrap_socket(socket.create_connection(_address(site), timeout=20), server_hostname="rota")
        for _ in range(_MUTE)
    ]
    try:
        _logs_in(site)
        assert _hung_up_on(list[socket.socket](mute)) >= _MUTE - 256
        assert site.ok("status") == "no jobs\n"
    finally:
        for each in mute:
            each.close()


def test_unix_socket_strangers_make_room_too(site: Deployment) -> None:
    silent = []
    try:
        for _ in range(1100):
            each = socket.socket(socket.AF_UNIX)
            each.settimeout(20)
            each.connect(str(Home(site.home).socket))
            silent.append(each)
        assert site.ok("status") == "no jobs\n"
        assert _hung_up_on(silent) >= 1100 - 1024
    finally:
        for each in silent:
            each.close()
