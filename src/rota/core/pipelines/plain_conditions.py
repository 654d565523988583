"""Conditions so plain that the shell answers them by itself: no process need be started for them."""

from __future__ import annotations

import re
from typing import Final

#: Without expansions and redirections; in single quotes, everything; in double quotes, a variable. Those of the
#: shell that looks at conditions have names in lower case, and `ROTA_OUTCOME` is another one for each condition.
_WORD: Final = r"""(?:[A-Za-z0-9_./:@%+,!=-]+|'[^'\n\0]*'|"\$(?!ROTA_)[A-Z][A-Z0-9_]*")+"""
#: Both are built into every shell, cannot change it, and end by themselves.
_PLAIN: Final = re.compile(rf"true|false|test(?: +{_WORD})+ *|\[(?: +{_WORD})+ +\] *", re.ASCII)


def is_plain(command: str) -> bool:
    """Can the shell that looks at conditions do this one itself, and go on with the next?"""
    return _PLAIN.fullmatch(command.strip(" \n")) is not None
