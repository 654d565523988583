"""Reason codes that runners send, checked at the door: a code is a word by which programs tell ends apart.

Whoever has the token of an agent may send any text there. It is replaced, never refused: an end counts whatever
it is called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from rota.core.leases import Finished

#: Also codes that a newer runner may know and this manager does not.
_CODE: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}", re.ASCII)
_UNKNOWN: Final = "unknown"


def with_proper_codes(ended: Iterable[Finished]) -> list[Finished]:
    """The same ends; a code that is none is `unknown`, and told in the message."""
    return [each if _is_proper(each.outcome.reason) else _renamed(each) for each in ended]


def _is_proper(code: str) -> bool:
    return not code or _CODE.fullmatch(code) is not None


def _renamed(finished: Finished) -> Finished:
    outcome = finished.outcome
    message = outcome.message or f"the runner says {outcome.reason[:100]!a}"
    renamed = msgspec.structs.replace(outcome, reason=_UNKNOWN, message=message)
    return msgspec.structs.replace(finished, outcome=renamed)
