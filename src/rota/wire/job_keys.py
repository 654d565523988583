"""Job keys: the secret of a key opens the jobs that were submitted with it.

A secret has 256 random bits and is kept in a private file of its owner. A job stores only its SHA-256.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

from rota.core.jobs.job import Spec

KEY: Final = "key"  #: the role of a client that has only the key of a job


def new_secret() -> str:
    return f"rota_{KEY}_{secrets.token_urlsafe(32)}"


def hash_of(secret: str) -> str:
    """The hash of a secret, as stored with a job."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def fits(secret: str, spec: Spec) -> bool:
    """Does the secret match the job's key? Compares in constant time."""
    return bool(spec.job_key and secret) and hmac.compare_digest(spec.job_key, hash_of(secret))
