"""A pass: the file with which the agent of a node authenticates to its manager and verifies it.

The first line is a token; the rest is the certificate (PEM) of the deployment's authority.
"""

from __future__ import annotations

_BEGIN = "-----BEGIN CERTIFICATE-----"


def compose(token: str, authority: str) -> str:
    """The content of the file."""
    return f"{token}\n{authority.strip()}\n"


def parse(text: str) -> tuple[str, str]:
    """The token and the authority's certificate. Raises `ValueError`, saying what is missing."""
    token, _, rest = text.lstrip().partition("\n")
    if not token.startswith("rota_runner_"):
        raise ValueError("it does not begin with the token of a runner")
    if _BEGIN not in rest:
        raise ValueError("the certificate of the authority is missing")
    return token.strip(), rest.strip() + "\n"
