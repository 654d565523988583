"""Options that are whole numbers, with one plain error message for anything else."""

from __future__ import annotations

import re
from typing import Final

import click

_DIGITS: Final = re.compile(r"[0-9]{1,18}")


class WholeNumber(click.IntRange):
    """A number from `low` to `high` (None: any from `low` on)."""

    def __init__(self, low: int, high: int | None = None) -> None:
        super().__init__(low, high)
        self._low = low
        self._high = high

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip()
        number = int(text) if _DIGITS.fullmatch(text) else -1
        if number >= self._low and (self._high is None or number <= self._high):
            return number
        span = f"from {self._low} to {self._high}" if self._high is not None else f"from {self._low} on"
        raise click.BadParameter(f"must be a number {span}", ctx=ctx, param=param)
