"""Ticket files: private, versioned, and refused when they are anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rota.errors import BadInput, Denied, EnvironmentFault, RotaError
from rota.wire import ticket_file
from rota.wire.ticket_file import Ticket

TICKET = Ticket(
    name="rota-1-a",
    secret=ticket_file.new_secret(),
    manager="192.0.2.1:7000",
    authority="-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n",
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ticket"
    ticket_file.write(path, TICKET)
    return path


def test_what_was_written_is_read_and_nobody_else_can_read_it(file: Path) -> None:
    assert file.stat().st_mode & 0o777 == 0o600
    read = ticket_file.read(file)
    assert (read.name, read.secret, read.manager, read.authority) == (
        TICKET.name,
        TICKET.secret,
        TICKET.manager,
        TICKET.authority,
    )


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_can_read_or_change_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(Denied, match="by others"):
        ticket_file.read(file)


def test_a_missing_file_and_a_later_version_are_told_apart(file: Path) -> None:
    with pytest.raises(EnvironmentFault, match="there is no ticket"):
        ticket_file.read(file.with_name("none"))
    _change(file, version=2, name=None)
    with pytest.raises(EnvironmentFault, match="version 2"):
        ticket_file.read(file)


@pytest.mark.parametrize(
    "changes",
    [
        {"secret": "rota_runner_x"},
        {"authority": ""},
        {"name": "../../etc"},
        {"name": "Capital"},
        {"name": "-dash"},
        {"name": "x" * 64},
        {"manager": "nowhere"},
        {"manager": "host:0"},
        {"manager": "host:99999"},
        {"name": 7},
    ],
)
def test_what_is_no_ticket_is_refused(file: Path, changes: dict[str, Any]) -> None:
    _change(file, **changes)
    with pytest.raises(BadInput):
        ticket_file.read(file)


@pytest.mark.parametrize("content", [b"", b"rota_ticket_abc", b"{}", b"\xff\xfe", b"[1]"])
def test_other_files_are_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(RotaError, match="is not a ticket"):
        ticket_file.read(file)


def test_fields_of_a_later_release_are_ignored(file: Path) -> None:
    _change(file, more="x")
    assert ticket_file.read(file).name == TICKET.name


def test_addresses() -> None:
    assert ticket_file.address("host:1") == ("host", 1)
    assert ticket_file.address("[::1]:7000") == ("::1", 7000)


def test_secrets_are_long_and_differ() -> None:
    secrets = {ticket_file.new_secret() for _ in range(100)}
    assert len(secrets) == 100
    assert all(len(secret) == len(ticket_file.PREFIX) + 43 for secret in secrets)
    assert len({ticket_file.digest(secret) for secret in secrets}) == 100


def _change(path: Path, **changes: Any) -> None:
    content = json.loads(path.read_bytes()) | changes
    path.write_text(json.dumps(content))
