"""A bounded cache of open files."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable


class OpenFiles:
    """File descriptors by name. Beyond `most`, the least recently used one is closed."""

    def __init__(self, opened: Callable[[str], int], *, most: int) -> None:
        self._opened = opened
        self._most = most
        self._handles: OrderedDict[str, int] = OrderedDict()

    def __getitem__(self, name: str) -> int:
        """Raises `OSError` if it cannot be opened."""
        handle = self._handles.get(name)
        if handle is not None:
            self._handles.move_to_end(name)
            return handle
        handle = self._handles[name] = self._opened(name)
        if len(self._handles) > self._most:
            os.close(self._handles.popitem(last=False)[1])
        return handle

    def close(self) -> None:
        for handle in self._handles.values():
            os.close(handle)
        self._handles.clear()
