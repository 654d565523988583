"""TLS for one deployment: its certificates on disk, kept fresh, and the contexts that use them.

TLS 1.3 only, always verified, and the server's name is always `rota`, wherever it runs. Whether
something must be made is decided from a small file beside the certificates, without `cryptography`.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from rota.errors import Denied, EnvironmentFault
from rota.wire import private_files

if TYPE_CHECKING:
    from rota.wire.authority import Authority

#: The name that clients verify, independent of the address they connect to.
SERVER_NAME: Final = "rota"
#: A server certificate with less time left is replaced; so is an authority's.
RENEW_BEFORE: Final = timedelta(days=30)
RENEW_CA_BEFORE: Final = timedelta(days=365)

_ALWAYS: Final = (SERVER_NAME, "localhost", "127.0.0.1", "::1")
_WILDCARDS: Final = frozenset({"", "*", "0.0.0.0", "::"})
_FILES: Final = ("ca.pem", "server.key", "server.pem")


class _Facts(msgspec.Struct, frozen=True, kw_only=True):
    """`certificates.json`: facts about the certificate files next to it. It is written last."""

    not_before: datetime
    not_after: datetime
    ca_not_after: datetime
    hosts: list[str]
    sha256: str  #: of `_FILES`, so that files which do not belong together are noticed


def ensure_certificates(directory: Path, *, hosts: list[str], now: datetime) -> bool:
    """Make sure that the deployment has an authority and a server certificate for these hosts (and for
    this machine's own names) with at least 30 days left. True if anything was made: a listener must
    then be told (`use_certificate`).

    Raises `EnvironmentFault` when the authority cannot be used: it is never replaced silently, since
    every client with the old certificate would need the new one.
    """
    wanted = _names(hosts)
    if not _stale(directory, wanted, now):
        return False
    private_files.make_directory(directory)
    authority = _authority(directory, now)
    issued = authority.issue(wanted, now=now)
    _write(directory, "server.key", issued.key)
    _write(directory, "server.pem", issued.certificate)
    facts = _Facts(
        not_before=issued.not_before,
        not_after=issued.not_after,
        ca_not_after=authority.not_after,
        hosts=wanted,
        sha256=_fingerprint(directory),
    )
    _write(directory, "certificates.json", msgspec.json.encode(facts))
    return True


def expires_at(directory: Path) -> datetime | None:
    """When the server certificate ends, or None if that is not known. Cheap."""
    facts = _facts(directory)
    return facts.not_after if facts else None


def server_context(directory: Path) -> ssl.SSLContext:
    """For the manager's listener. Raises `EnvironmentFault` or `Denied` if the files cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0  # every connection shows its token again; nothing is resumed
    use_certificate(context, directory)
    return context


def use_certificate(context: ssl.SSLContext, directory: Path) -> None:
    """Let a listener's context show the certificate that is there now, from the next connection on."""
    key = directory / "server.key"
    try:
        private_files.read(key)  # refuses one that others may read
        context.load_cert_chain(directory / "server.pem", key)
    except (OSError, ssl.SSLError) as error:
        raise EnvironmentFault(
            f"the server certificate in {directory} cannot be used: {_reason(error)}",
            hint=f"remove {directory / 'server.pem'} and start the manager again: it makes a new one",
        ) from None


def client_context(ca: Path) -> ssl.SSLContext:
    """The context of a client; use it with `server_hostname=SERVER_NAME`. It trusts this authority only."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies, and checks the name
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    try:
        context.load_verify_locations(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise EnvironmentFault(
            f"the authority's certificate {ca} cannot be used: {_reason(error)}",
            hint="copy tls/ca.pem of the manager's deployment there",
        ) from None
    return context


def _names(hosts: list[str]) -> list[str]:
    """What the certificate is for, in a fixed order, each once."""
    own = socket.gethostname()
    if not own.isascii():  # cannot be in a certificate, and must not keep the manager from starting
        own = ""
    return list(dict.fromkeys(name for name in (*_ALWAYS, own, *hosts) if name not in _WILDCARDS))


def _stale(directory: Path, wanted: list[str], now: datetime) -> bool:
    facts = _facts(directory)
    if facts is None or facts.hosts != wanted:
        return True
    if not facts.not_before <= now < facts.not_after - RENEW_BEFORE or now >= facts.ca_not_after - RENEW_CA_BEFORE:
        return True
    try:
        # The authority's key is not read here, but that it has gone must not stay unknown until it is needed.
        return not (directory / "ca.key").exists() or _fingerprint(directory) != facts.sha256
    except OSError:
        return True


def _facts(directory: Path) -> _Facts | None:
    """None when there are none, or none that can be understood: both are healed by making new ones."""
    try:
        return msgspec.json.decode(private_files.read(directory / "certificates.json"), type=_Facts)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _fingerprint(directory: Path) -> str:
    digest = hashlib.sha256()
    for name in _FILES:
        content = private_files.read(directory / name)
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()


def _authority(directory: Path, now: datetime) -> Authority:
    """The deployment's authority; made if the deployment is new, prolonged if it ends soon."""
    from rota.wire.authority import Authority

    # `ca.key` is written first and `ca.pem` next: without `ca.pem` no certificate was ever issued.
    if not any((directory / name).exists() for name in ("ca.pem", "server.pem", "certificates.json")):
        authority = Authority.new(now=now)
        _write(directory, "ca.key", authority.key_pem)
        _write(directory, "ca.pem", authority.certificate_pem)
        return authority
    try:
        authority = Authority.load(
            key=private_files.read(directory / "ca.key"), certificate=private_files.read(directory / "ca.pem")
        )
    except Denied:
        raise
    except (OSError, EnvironmentFault) as error:
        raise EnvironmentFault(
            f"the certificate authority in {directory} cannot be used: {_reason(error)}",
            hint=f"restore ca.key and ca.pem from a backup, or remove {directory} to begin with a new "
            "authority, whose ca.pem every remote client and runner then needs",
        ) from None
    if not authority.not_before <= now < authority.not_after - RENEW_CA_BEFORE:
        authority = authority.prolonged(now=now)
        _write(directory, "ca.pem", authority.certificate_pem)
    return authority


def _write(directory: Path, name: str, data: bytes) -> None:
    private_files.write(directory / name, data)


def _reason(error: Exception) -> str:
    if isinstance(error, EnvironmentFault):
        return error.message
    if isinstance(error, ssl.SSLError):  # also an OSError, whose strerror is no help to a person
        return "the PEM text is damaged, or the key and the certificate are not a pair"
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"{Path(error.filename).name} is missing"
    return str(error)
