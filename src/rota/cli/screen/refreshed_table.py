"""A table of jobs or groups that is updated in place: the cursor stays on its row, and nothing flickers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import DataTable

from rota.cli.screen.rows import Tab, needs, widths


class RowTable(DataTable[Text]):
    """One page of rows, each with a key of its own."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Details"),
        # Left and right belong to the tabs: there are no columns to choose.
        Binding("left", "app.tab(-1)", show=False),
        Binding("right", "app.tab(1)", show=False),
        Binding("home", "scroll_top", show=False),
        Binding("end", "scroll_bottom", show=False),
    ]

    class Beyond(Message):
        """The cursor was moved past the last row (1) or the first (-1)."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    def __init__(self, tab: Tab) -> None:
        super().__init__(cursor_type="row", zebra_stripes=True, id=f"table-{tab.name}")
        self.tab = tab
        self._keys: list[str] = []
        self._shown: dict[str, list[Text]] = {}
        self._sizes: list[int] = []
        self._room = 0
        self._needed: list[int] = []

    def selected(self) -> str:
        """The key of the row under the cursor, or nothing."""
        return self._keys[self.cursor_row] if 0 <= self.cursor_row < len(self._keys) else ""

    def fill(self, rows: Sequence[tuple[str, list[Text]]], room: int) -> None:
        """Show these rows, updating only cells that differ."""
        sizes = widths(self.tab.columns, room, needed=self._need([row for _, row in rows], room))
        selected, at = self.selected(), self.cursor_row
        shown = {key: [text for text, size in zip(row, sizes, strict=True) if size] for key, row in rows}
        keys = list(shown)
        kept = [key for key in self._keys if key in shown]
        if sizes != self._sizes or kept != keys[: len(kept)]:
            self._begin(sizes)
            kept = []
        for key in [key for key in self._shown if key not in shown]:
            self.remove_row(key)
        for row, key in enumerate(kept):
            for column, (old, new) in enumerate(zip(self._shown[key], shown[key], strict=True)):
                if old != new:
                    self.update_cell_at((row, column), new)  # type: ignore[arg-type]
        for key in keys[len(kept) :]:
            self.add_row(*shown[key], key=key)
        self._keys, self._shown = keys, shown
        if keys and self.selected() != selected:
            self.move_cursor(row=keys.index(selected) if selected in shown else min(at, len(keys) - 1))

    def _need(self, rows: Sequence[list[Text]], room: int) -> list[int]:
        """The widths that the columns need. At one terminal width they only grow, so that columns do not jump."""
        if room != self._room:
            self._room, self._needed = room, [0] * len(self.tab.columns)
        self._needed = list(map(max, self._needed, needs(self.tab.columns, rows)))
        return self._needed

    def _begin(self, sizes: list[int]) -> None:
        self.clear(columns=True)
        self._shown, self._sizes = {}, sizes
        for column, size in zip(self.tab.columns, sizes, strict=True):
            if size:
                title = Text(column.title, justify="right" if column.right else "left")
                self.add_column(title, width=size, key=column.title)

    def action_cursor_down(self) -> None:
        if self.cursor_row >= self.row_count - 1:
            self.post_message(self.Beyond(1))
        super().action_cursor_down()

    def action_page_down(self) -> None:
        if self.cursor_row >= self.row_count - 1:
            self.post_message(self.Beyond(1))
        super().action_page_down()

    def action_cursor_up(self) -> None:
        if self.cursor_row <= 0:
            self.post_message(self.Beyond(-1))
        super().action_cursor_up()

    def action_page_up(self) -> None:
        if self.cursor_row <= 0:
            self.post_message(self.Beyond(-1))
        super().action_page_up()
