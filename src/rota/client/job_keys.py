"""Files with the keys of jobs: made when they are first used, and copied by hand to wherever they are needed.

Few jobs have a key, so what cryptography needs is imported only for those that have.
"""

from __future__ import annotations

from rota.errors import BadInput, Denied


def secret_in(path: str) -> str:
    """The secret in a file. Raises `Denied` if there is none, or others may read it."""
    from pathlib import Path

    from rota.wire.job_keys import KEY
    from rota.wire.tokens import read_token

    try:
        secret = read_token(Path(path))
    except Denied as error:
        raise Denied(error.message, hint="make one with 'rota add --job-key FILE', or copy it here") from None
    if not secret.startswith(f"rota_{KEY}_"):
        raise BadInput(f"{path} holds a token, not the key of a job", hint="give the file of a key")
    return secret


def hash_in(path: str) -> str:
    """What a job stores of the key in this file, which is made if it is not there."""
    from pathlib import Path

    from rota.wire import private_files
    from rota.wire.job_keys import hash_of, new_secret

    place = Path(path)
    if not place.exists():
        private_files.write(place, f"{new_secret()}\n".encode())
    return hash_of(secret_in(path))
