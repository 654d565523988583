"""TLS between real sockets on loopback, and the files it lives from."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rota.errors import Denied, EnvironmentFault
from rota.wire import private_files, tls

NOW = datetime.now(UTC)
DAY = timedelta(days=1)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    directory = tmp_path / "tls"
    assert tls.ensure_certificates(directory, hosts=[], now=NOW)
    return directory


@contextmanager
def listening(context: ssl.SSLContext) -> Iterator[tuple[int, list[object]]]:
    """A server on loopback that says "hello" to whoever gets through, one peer after the other.

    Gives its port and what happened to each peer: "served", or the error."""
    happened: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                peer.settimeout(5)
                try:
                    with context.wrap_socket(peer, server_side=True) as secure:
                        secure.sendall(b"hello")
                        happened.append("served")
                except OSError as error:
                    happened.append(error)
                finally:
                    peer.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1], happened
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(10)
            assert not thread.is_alive()


def greet(port: int, context: ssl.SSLContext, name: str = tls.SERVER_NAME) -> tuple[bytes, str | None]:
    with (
        closing(socket.create_connection(("127.0.0.1", port), timeout=5)) as plain,
        context.wrap_socket(plain, server_hostname=name) as secure,
    ):
        return secure.recv(100), secure.version()


# ------------------------------------------------------------------ on the wire


def test_a_client_with_the_right_authority_gets_through_over_tls_1_3(made: Path) -> None:
    with listening(tls.server_context(made)) as (port, _):
        assert greet(port, tls.client_context(made / "ca.pem")) == (b"hello", "TLSv1.3")


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1", socket.gethostname(), "10.1.2.3", "node7"])
def test_the_certificate_is_for_every_name_of_the_machine(tmp_path: Path, name: str) -> None:
    tls.ensure_certificates(tmp_path, hosts=["10.1.2.3", "node7"], now=NOW)
    with listening(tls.server_context(tmp_path)) as (port, _):
        assert greet(port, tls.client_context(tmp_path / "ca.pem"), name)[0] == b"hello"


def test_another_name_is_refused(made: Path) -> None:
    with listening(tls.server_context(made)) as (port, _), pytest.raises(ssl.SSLCertVerificationError):
        greet(port, tls.client_context(made / "ca.pem"), "elsewhere")


def test_the_server_of_another_deployment_is_refused(made: Path, tmp_path: Path) -> None:
    tls.ensure_certificates(tmp_path / "other", hosts=[], now=NOW)
    foreign = tls.server_context(tmp_path / "other")
    with listening(foreign) as (port, _), pytest.raises(ssl.SSLCertVerificationError):
        greet(port, tls.client_context(made / "ca.pem"))


def test_the_systems_authorities_are_not_trusted(made: Path) -> None:
    assert len(tls.client_context(made / "ca.pem").get_ca_certs()) == 1


@pytest.mark.parametrize("age", [91 * DAY, -2 * DAY], ids=["expired", "not valid yet"])
def test_a_certificate_outside_its_time_is_refused(tmp_path: Path, age: timedelta) -> None:
    tls.ensure_certificates(tmp_path, hosts=[], now=NOW - age)
    with listening(tls.server_context(tmp_path)) as (port, _), pytest.raises(ssl.SSLCertVerificationError):
        greet(port, tls.client_context(tmp_path / "ca.pem"))


def test_tls_1_2_is_refused_by_the_server(made: Path) -> None:
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(made / "ca.pem")
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with listening(tls.server_context(made)) as (port, happened):
        with pytest.raises(ssl.SSLError):
            greet(port, client)
        greet(port, tls.client_context(made / "ca.pem"))
    assert isinstance(happened[0], ssl.SSLError)
    assert happened[1] == "served"


def test_tls_1_2_is_refused_by_the_client(made: Path) -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    old.load_cert_chain(made / "server.pem", made / "server.key")
    with listening(old) as (port, _), pytest.raises(ssl.SSLError):
        greet(port, tls.client_context(made / "ca.pem"))


@pytest.mark.parametrize(
    "noise",
    [
        b"GET / HTTP/1.1\r\nHost: rota\r\n\r\n",
        b"\x00\x00\x00\x10\x95\xa5hello\x01\xa4user",
        b"\x16\x03\x01\xff\xff" + b"\x00" * 300,
        b"\x16\x03\x01\x02\x00\x01",
        b"\x00" * 5,
        b"\x80",
        b"",
    ],
    ids=["http", "a frame without TLS", "a lying record", "half a handshake", "zeros", "one byte", "nothing"],
)
def test_what_is_not_tls_gets_nothing_and_harms_nobody(made: Path, noise: bytes) -> None:
    with listening(tls.server_context(made)) as (port, happened):
        with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
            heard = b""
            try:
                plain.sendall(noise)
                plain.shutdown(socket.SHUT_WR)
                while piece := plain.recv(4096):
                    heard += piece
            except OSError:  # the server may be quicker and have gone
                pass
        assert b"hello" not in heard
        assert heard == b"" or heard[0] == 0x15  # a TLS alert and nothing else
        assert greet(port, tls.client_context(made / "ca.pem"))[0] == b"hello"
    assert isinstance(happened[0], OSError)


def test_a_handshake_cut_at_any_byte_harms_nobody(made: Path) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = tls.client_context(made / "ca.pem").wrap_bio(incoming, outgoing, server_hostname=tls.SERVER_NAME)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    first = outgoing.read()
    with listening(tls.server_context(made)) as (port, happened):
        cuts = range(0, len(first), 37)
        for cut in cuts:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
                plain.sendall(first[:cut])
        assert greet(port, tls.client_context(made / "ca.pem"))[0] == b"hello"
    assert happened.count("served") == 1
    assert len(happened) == len(cuts) + 1


def test_a_session_is_not_resumed(made: Path) -> None:
    context = tls.client_context(made / "ca.pem")
    with (
        listening(tls.server_context(made)) as (port, _),
        closing(socket.create_connection(("127.0.0.1", port), timeout=5)) as plain,
        context.wrap_socket(plain, server_hostname="rota") as secure,
    ):
        secure.recv(100)
        assert secure.session is None or not secure.session.has_ticket


# ------------------------------------------------------------------ renewal


def test_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        tls.ensure_certificates(tmp_path / "tls", hosts=[], now=NOW)
    finally:
        os.umask(old)
    assert (tmp_path / "tls").stat().st_mode & 0o777 == 0o700
    modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "tls").iterdir()}
    assert modes == dict.fromkeys(["ca.pem", "ca.key", "server.pem", "server.key", "certificates.json"], 0o600)


def test_what_is_fresh_is_left_alone(made: Path) -> None:
    before = {file.name: file.read_bytes() for file in made.iterdir()}
    assert not tls.ensure_certificates(made, hosts=[], now=NOW + 59 * DAY)
    assert {file.name: file.read_bytes() for file in made.iterdir()} == before


def test_a_month_before_the_end_the_certificate_is_renewed_and_the_authority_stays(made: Path) -> None:
    authority, end = (made / "ca.pem").read_bytes(), tls.expires_at(made)
    assert tls.ensure_certificates(made, hosts=[], now=NOW + 61 * DAY)
    renewed = tls.expires_at(made)
    assert end is not None
    assert renewed is not None
    assert renewed - end == 61 * DAY
    assert (made / "ca.pem").read_bytes() == authority


def test_clients_that_were_given_the_authority_before_accept_the_renewed_certificate(tmp_path: Path) -> None:
    tls.ensure_certificates(tmp_path, hosts=[], now=NOW - 80 * DAY)
    client = tls.client_context(tmp_path / "ca.pem")
    assert tls.ensure_certificates(tmp_path, hosts=[], now=NOW)
    with listening(tls.server_context(tmp_path)) as (port, _):
        assert greet(port, client)[0] == b"hello"


def test_a_listener_shows_the_renewed_certificate_without_a_restart(tmp_path: Path) -> None:
    tls.ensure_certificates(tmp_path, hosts=[], now=NOW - 91 * DAY)
    context, client = tls.server_context(tmp_path), tls.client_context(tmp_path / "ca.pem")
    with listening(context) as (port, _):
        with pytest.raises(ssl.SSLCertVerificationError):
            greet(port, client)
        assert tls.ensure_certificates(tmp_path, hosts=[], now=NOW)
        tls.use_certificate(context, tmp_path)
        assert greet(port, client)[0] == b"hello"


def test_other_hosts_need_another_certificate(made: Path) -> None:
    assert tls.ensure_certificates(made, hosts=["10.0.0.7"], now=NOW)
    assert not tls.ensure_certificates(made, hosts=["10.0.0.7"], now=NOW)
    assert tls.ensure_certificates(made, hosts=[], now=NOW)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_listening_everywhere_is_not_a_name(made: Path, host: str) -> None:
    assert not tls.ensure_certificates(made, hosts=[host], now=NOW)


def test_a_clock_that_went_back_makes_a_certificate_that_is_valid_now(tmp_path: Path) -> None:
    tls.ensure_certificates(tmp_path, hosts=[], now=NOW + 1000 * DAY)
    assert tls.ensure_certificates(tmp_path, hosts=[], now=NOW)
    with listening(tls.server_context(tmp_path)) as (port, _):
        assert greet(port, tls.client_context(tmp_path / "ca.pem"))[0] == b"hello"


def test_an_authority_that_ends_is_prolonged_with_its_key(tmp_path: Path) -> None:
    tls.ensure_certificates(tmp_path, hosts=[], now=NOW - 3400 * DAY)
    old_client, key = tls.client_context(tmp_path / "ca.pem"), (tmp_path / "ca.key").read_bytes()
    assert tls.ensure_certificates(tmp_path, hosts=[], now=NOW)
    assert (tmp_path / "ca.key").read_bytes() == key
    with listening(tls.server_context(tmp_path)) as (port, _):
        for client in (old_client, tls.client_context(tmp_path / "ca.pem")):
            assert greet(port, client)[0] == b"hello"


def test_nothing_slow_is_imported_while_nothing_must_be_made(made: Path) -> None:
    check = (
        "import sys; from datetime import datetime, UTC; from pathlib import Path\n"
        "from rota.wire import tls\n"
        f"made = tls.ensure_certificates(Path({str(made)!r}), hosts=[], now=datetime.now(UTC))\n"
        f"tls.server_context(Path({str(made)!r})); tls.client_context(Path({str(made)!r}) / 'ca.pem')\n"
        "print(made, tls.expires_at(Path(sys.argv[1])) is not None, 'cryptography' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", check, str(made)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]


# ------------------------------------------------------------------ damage


@pytest.mark.parametrize("name", ["server.key", "server.pem", "certificates.json"])
@pytest.mark.parametrize(
    "content", [None, b"", b"nonsense", b"\xff\x00"], ids=["missing", "empty", "text", "bytes"]
)
def test_damage_that_the_authority_can_heal_is_healed(made: Path, name: str, content: bytes | None) -> None:
    if content is None:
        (made / name).unlink()
    else:
        (made / name).write_bytes(content)
    client = tls.client_context(made / "ca.pem")
    assert tls.ensure_certificates(made, hosts=[], now=NOW)
    assert not tls.ensure_certificates(made, hosts=[], now=NOW)
    with listening(tls.server_context(made)) as (port, _):
        assert greet(port, client)[0] == b"hello"


@pytest.mark.parametrize("name", ["ca.key", "ca.pem"])
@pytest.mark.parametrize("content", [None, b"", b"nonsense"], ids=["missing", "empty", "text"])
def test_a_damaged_authority_is_said_and_never_replaced(made: Path, name: str, content: bytes | None) -> None:
    (made / "certificates.json").unlink()
    if content is None:
        (made / name).unlink()
    else:
        (made / name).write_bytes(content)
    before = {file.name: file.read_bytes() for file in made.iterdir()}
    with pytest.raises(EnvironmentFault, match="authority") as caught:
        tls.ensure_certificates(made, hosts=[], now=NOW)
    assert "backup" in caught.value.hint
    assert "\n" not in str(caught.value)
    assert {file.name: file.read_bytes() for file in made.iterdir()} == before


def test_an_authoritys_key_that_has_gone_is_noticed_before_it_is_needed(made: Path) -> None:
    (made / "ca.key").unlink()
    with pytest.raises(EnvironmentFault, match=r"ca\.key is missing"):
        tls.ensure_certificates(made, hosts=[], now=NOW)


def test_a_key_of_another_authority_is_refused(made: Path, tmp_path: Path) -> None:
    tls.ensure_certificates(tmp_path / "other", hosts=[], now=NOW)
    (made / "ca.key").write_bytes((tmp_path / "other" / "ca.key").read_bytes())
    with pytest.raises(EnvironmentFault, match="not a pair"):
        tls.ensure_certificates(made, hosts=["new"], now=NOW)


def test_an_authoritys_key_that_others_may_read_is_refused(made: Path) -> None:
    (made / "ca.key").chmod(0o640)
    with pytest.raises(Denied, match="chmod 600"):
        tls.ensure_certificates(made, hosts=["new"], now=NOW)


def test_a_servers_key_that_others_may_read_is_refused(made: Path) -> None:
    (made / "server.key").chmod(0o604)
    with pytest.raises(Denied, match="chmod 600"):
        tls.ensure_certificates(made, hosts=[], now=NOW)
    with pytest.raises(Denied, match="chmod 600"):
        tls.server_context(made)


@pytest.mark.parametrize("name", ["server.key", "server.pem"])
@pytest.mark.parametrize("content", [None, b"nonsense"], ids=["missing", "damaged"])
def test_a_server_without_its_files_says_what_to_do(made: Path, name: str, content: bytes | None) -> None:
    (made / name).unlink() if content is None else (made / name).write_bytes(content)
    with pytest.raises(EnvironmentFault) as caught:
        tls.server_context(made)
    assert "makes a new one" in caught.value.hint


@pytest.mark.parametrize("content", [None, b"", b"nonsense"], ids=["missing", "empty", "damaged"])
def test_a_client_without_the_authority_says_what_to_do(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "ca.pem").write_bytes(content)
    with pytest.raises(EnvironmentFault, match=r"copy tls/ca\.pem"):
        tls.client_context(tmp_path / "ca.pem")


@pytest.mark.parametrize("writes", range(5))
def test_a_crash_between_any_two_files_is_healed_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    real, done = private_files.write, 0

    def crash(path: Path, data: bytes) -> None:
        nonlocal done
        if done == writes:
            raise KeyboardInterrupt
        done += 1
        real(path, data)

    for _ in range(2):  # while the first are made, and while they are renewed
        monkeypatch.setattr(private_files, "write", crash)
        done = 0
        with pytest.raises(KeyboardInterrupt):
            _renew_again_and_again(tmp_path)
        monkeypatch.setattr(private_files, "write", real)
        tls.ensure_certificates(tmp_path, hosts=[], now=NOW)
        with listening(tls.server_context(tmp_path)) as (port, _):
            assert greet(port, tls.client_context(tmp_path / "ca.pem"))[0] == b"hello"


def _renew_again_and_again(directory: Path) -> None:
    for number in range(3):
        tls.ensure_certificates(directory, hosts=[f"host{number}"], now=NOW)
