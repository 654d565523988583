"""Names of signals as people write them: TERM, SIGTERM, or a number."""

from __future__ import annotations

from signal import Signals

from rota.errors import BadInput


def signal_name(text: str) -> str:
    """Return the name of a signal without SIG. Raises `BadInput`."""
    word = text.strip().upper()
    if word.isascii() and word.isdigit():
        try:
            return Signals(int(word)).name.removeprefix("SIG")
        except ValueError:
            raise BadInput(f"there is no signal {word}", hint="give a name such as TERM or USR1") from None
    name = word.removeprefix("SIG")
    known = [each.name.removeprefix("SIG") for each in Signals]
    if name in known:
        return name
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1)
    shown = text if text.isprintable() and len(text) < 20 else "that"
    hint = f"did you mean {near[0]}?" if near else "give a name such as TERM or USR1"
    raise BadInput(f"'{shown}' is not a signal", hint=hint)
