"""The deployment's own certificate authority: makes keys and certificates, as bytes.

The only module that needs `cryptography`, which is slow to import: `rota.wire.tls` loads it when
something must be made. It reads and writes no files.
"""

from __future__ import annotations

import ipaddress
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rota.errors import EnvironmentFault

CA_LIFE: Final = timedelta(days=3650)
SERVER_LIFE: Final = timedelta(days=90)
#: Other machines' clocks may be a little behind.
_SKEW: Final = timedelta(hours=1)
_CURVE: Final = ec.SECP256R1()


class Issued(NamedTuple):
    """A server's key and certificate as PEM, and when the latter is valid."""

    key: bytes
    certificate: bytes
    not_before: datetime
    not_after: datetime


class Authority:
    """A key that signs, and its certificate."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self._certificate = certificate

    @classmethod
    def new(cls, *, now: datetime) -> Authority:
        """Create a new authority, with a new key."""
        key = ec.generate_private_key(_CURVE)
        name = x509.Name(
            [x509.NameAttribute(NameOID.COMMON_NAME, f"Rota CA {x509.random_serial_number():x}"[:40])]
        )
        return cls(key, _ca_certificate(key, name, now))

    @classmethod
    def load(cls, *, key: bytes, certificate: bytes) -> Authority:
        """The authority in these PEM texts. Raises `EnvironmentFault` if they are damaged or not a pair."""
        try:
            loaded = serialization.load_pem_private_key(key, password=None)
            parsed = x509.load_pem_x509_certificate(certificate)
            if not isinstance(loaded, ec.EllipticCurvePrivateKey) or loaded.public_key() != parsed.public_key():
                raise ValueError("the key and the certificate are not a pair")  # noqa: TRY301
        except Exception as error:  # the parser raises many kinds
            raise EnvironmentFault(f"{error}") from None
        return cls(loaded, parsed)

    def prolonged(self, *, now: datetime) -> Authority:
        """The same key and name with a new certificate: what was signed before stays valid."""
        return Authority(self._key, _ca_certificate(self._key, self._certificate.subject, now))

    @property
    def key_pem(self) -> bytes:
        return _key_pem(self._key)

    @property
    def certificate_pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def not_before(self) -> datetime:
        return self._certificate.not_valid_before_utc

    @property
    def not_after(self) -> datetime:
        return self._certificate.not_valid_after_utc

    def issue(self, hosts: list[str], *, now: datetime) -> Issued:
        """A new server key and a certificate for these names and addresses."""
        not_before = max(now - _SKEW, self.not_before)
        not_after = min(now + SERVER_LIFE, self.not_after)
        key = ec.generate_private_key(_CURVE)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "rota")]))
            .issuer_name(self._certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(not_before)
            .not_valid_after(not_after)
            .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        return Issued(_key_pem(key), pem, not_before, not_after)


def _ca_certificate(key: ec.EllipticCurvePrivateKey, name: x509.Name, now: datetime) -> x509.Certificate:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + CA_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise EnvironmentFault(f"{host!r} cannot be in a certificate", hint="use an ASCII host name") from None


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
