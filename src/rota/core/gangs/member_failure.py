"""What becomes of the other members when one fails. Pure: the engine and the simulator decide by the same rule."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

KILL: Final = "kill"
KEEP: Final = "keep"
RETRY: Final = "retry"
#: Reason code of members that ended because of another one.
CODE: Final = "gang"


class Others(Enum):
    """What becomes of the other members."""

    KEEP = "they go on"
    END = "they end, and have failed with the code `gang`"
    AGAIN = "they end and wait again with the one that failed; it costs each of them a retry"


def after_failure(policy: str, *, retried: bool, retries_left: Iterable[int]) -> Others:
    """What becomes of the other members when one has ended without success.

    `policy`: `on_member_failure`, empty means `kill`. `retried`: by its own settings the failed one would be tried
    again; False of one that was killed. `retries_left`: of the others.
    """
    if policy == KEEP:
        return Others.KEEP
    if policy == RETRY and retried and all(left > 0 for left in retries_left):
        return Others.AGAIN
    return Others.END
