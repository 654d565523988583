"""The application behind `rota top`: its widgets, and what each key does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.filter import LineFilter
from textual.widgets import DataTable, Footer, Input, Static, TabbedContent, TabPane

from rota.cli.input.selectors import group_selector
from rota.cli.render.status_text import busiest
from rota.cli.render.text import count, harmless
from rota.cli.screen.data_thread import PAGE, SEARCHED, ManagerLost, Notice, Refreshed, Refresher, TableView
from rota.cli.screen.details import Details
from rota.cli.screen.dialogs import Help, Question
from rota.cli.screen.line_filter import HarmlessLines
from rota.cli.screen.refreshed_table import RowTable
from rota.cli.screen.row_filter import Filter, parse_filter
from rota.cli.screen.rows import GROUPS, RED, RUNNING, TABS, Tab, command, group_row
from rota.cli.screen.summary import summary
from rota.core.jobs.reason_texts import sentence
from rota.errors import BadInput

if TYPE_CHECKING:
    from rota.client.blocking import Client
    from rota.wire.views import JobPage, StatusView

_GROUPS_SHOWN: Final = 500
_TABS: Final = {tab.name: tab for tab in TABS}
_DONE: Final = {"kill": "killed", "hold": "held", "release": "released", "retry": "to be run again"}
_ASKED: Final = ("kill", "retry")
_WELCOME: Final = """No jobs yet. Add some from another terminal:

  rota add -- sleep 60          one command
  rota add commands.txt         one command a line
  rota run commands.txt         the same, and wait for them"""


class TopApp(App[None]):
    """`rota top`."""

    CSS_PATH = "top.tcss"
    TITLE = "rota top"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("question_mark", "help", "Help"),
        Binding("slash", "filter", "Filter"),
        Binding("escape", "clear", show=False),
        Binding("k", "act('kill')", "Kill"),
        Binding("h", "act('hold')", "Hold"),
        Binding("u", "act('release')", "Release"),
        Binding("r", "act('retry')", "Retry"),
        Binding("tab", "tab(1)", show=False, priority=True),
        Binding("shift+tab", "tab(-1)", show=False, priority=True),
        *(Binding(str(n), f"go('{tab.name}')", show=False) for n, tab in enumerate(TABS, 1)),
    ]

    def __init__(self, connect: Callable[[], Client], client: Client, *, filter: str = "") -> None:
        super().__init__()
        self._harmless = HarmlessLines()
        self._connect = connect
        self._feed = Refresher(client, self.post_message)
        self._view = TableView(states=RUNNING.states, filter=parse_filter(filter))
        self._pages: list[int] = []  #: where the pages before this one began
        self._next: str | None = None
        self._status: StatusView | None = None
        self._page: JobPage | None = None
        self._trouble = ""
        # Messages of threads may arrive while the screen is being taken down, so widgets are not queried by name.
        self._above = Static(id="summary", markup=False)
        self._tabs = TabbedContent(initial=RUNNING.name, id="tabs")
        self._tables = {tab.name: RowTable(tab) for tab in TABS}
        self._empty = {tab.name: Static(classes="empty", markup=False) for tab in TABS}
        self._below = Static(id="line", markup=False)
        self._field = Input(placeholder="text, @group, host=x, user=x, 12-20, last", id="filter")

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), self._harmless]

    def compose(self) -> ComposeResult:
        yield self._above
        with self._tabs:
            for tab in TABS:
                with TabPane(tab.title, id=tab.name):
                    yield self._empty[tab.name]
                    yield self._tables[tab.name]
        yield self._below
        yield self._field
        yield Footer()

    def on_mount(self) -> None:
        # Tabs are chosen by our own keys; the focus stays in the table.
        self.query_one("ContentTabs").can_focus = False
        self._field.display = False
        self._table().focus()
        self._feed.look(self._view)
        self._feed.start()

    def on_unmount(self) -> None:
        self._feed.stop()

    # ------------------------------------------------------------------ what is shown

    def on_refreshed(self, message: Refreshed) -> None:
        now = datetime.now(UTC)
        self._status = message.status
        for screen in self.screen_stack:
            if isinstance(screen, Details) and message.job is not None and screen.job == message.job.id:
                screen.show(message.job, now)
        wanted = msgspec.structs.replace(self._view, selected=0, details=0)
        if msgspec.structs.replace(message.view, selected=0, details=0) == wanted:
            self._page = message.page
        else:
            self._page = None  # an answer to an earlier question
        self._draw(now)

    def on_manager_lost(self, message: ManagerLost) -> None:
        self._trouble = message.text
        self._draw(datetime.now(UTC))

    def on_notice(self, message: Notice) -> None:
        self.notify(harmless(message.text), severity="warning" if message.wrong else "information", markup=False)

    def on_resize(self) -> None:
        self.call_after_refresh(lambda: self._draw(datetime.now(UTC)))

    def _draw(self, now: datetime) -> None:
        found = self._status
        if found is None:
            return
        lines = summary(found, now, room=self.size.width)
        if self._trouble:
            lost = Text(f"{harmless(self._trouble)}; waiting for it to come back", f"bold {RED}")
            lines = Text("\n").join([lost, lines.split("\n")[1]])
        self._above.update(lines)
        for tab in TABS:
            n = sum(found.counts.get(state, 0) for state in tab.states) if tab.states else len(found.groups)
            with contextlib.suppress(NoMatches):  # while the screen is being taken down
                self._tabs.get_tab(tab.name).label = f"{tab.title} {n:,}"
        tab = _TABS[self._view.tab]
        rows: list[tuple[str, list[Text]]] = []
        if tab.row is not None:
            if self._page is None:
                return
            rows = [(str(job.id), tab.row(job, now)) for job in self._page.jobs]
            self._next = self._page.next
        else:
            names = [name for name in busiest(found.groups) if self._shows(name)][:_GROUPS_SHOWN]
            rows = [(name, group_row(name, found, now)) for name in sorted(names)]
        table = self._table()
        table.fill(rows, self.size.width - 2)
        empty = self._empty[tab.name]
        empty.display, table.display = not rows, bool(rows)
        empty.update(Text(self._why_empty(tab, found)))
        if rows and len(self.screen_stack) == 1 and self.focused is None and tab.name == self._tabs.active:
            table.focus()
        self._below.update(self._line(tab, found, len(rows)))

    def _shows(self, group: str) -> bool:
        """Does the filter match the group's name?"""
        words = [word.removeprefix("@").removeprefix("group=") for word in self._view.filter.words]
        pieces = self._view.filter.text
        return (not words or group in words) and all(piece in group.casefold() for piece in pieces)

    def _why_empty(self, tab: Tab, found: StatusView) -> str:
        if not found.counts:
            return _WELCOME
        if self._filtered():
            return "Nothing here matches the filter. Esc clears it."
        return tab.empty

    def _filtered(self) -> bool:
        return self._view.filter != Filter()

    def _line(self, tab: Tab, found: StatusView, rows: int) -> Text:
        parts = []
        if tab.row is None:
            more = len(found.groups) - rows
            if more and not self._filtered():
                parts.append(f"… and {count(more, 'more group')}, less busy")
        elif self._page is not None and self._view.filter.text:
            parts.append(f"{rows} found" + (f" in {SEARCHED:,} jobs, PgDn for more" if self._next else ""))
        elif self._page is not None and (self._pages or self._next):
            first = len(self._pages) * PAGE + 1
            parts.append(f"{first:,}-{first + rows - 1:,} of {self._page.total:,}, PgDn at the end for more")
        if self._filtered():
            parts.append(f"filter: {self._view.filter} (Esc clears it)")
        chosen = self._table().selected()
        reasons = (job.reason for job in (self._page.jobs if self._page else []) if str(job.id) == chosen)
        if tab.states and tab is not RUNNING and (reason := next(reasons, None)):
            parts.insert(0, f"job {chosen}: {sentence(reason.code, reason.message)}")
        return Text(harmless("   ".join(parts)), no_wrap=True, overflow="ellipsis")

    # ------------------------------------------------------------------ where one looks

    def _table(self) -> RowTable:
        return self._tables[self._view.tab]

    def _look(self, **changes: object) -> None:
        """Change the view; a new tab or filter begins at its first page."""
        if "cursor" not in changes and changes.keys() & {"tab", "filter"}:
            changes["cursor"] = 0
            self._pages = []
        self._view = msgspec.structs.replace(self._view, **changes)
        self._feed.look(self._view)

    def action_tab(self, step: int) -> None:
        if len(self.screen_stack) == 1 and not isinstance(self.focused, Input):
            place = [tab.name for tab in TABS].index(self._view.tab)
            self.action_go(TABS[(place + step) % len(TABS)].name)

    def action_go(self, name: str) -> None:
        if len(self.screen_stack) == 1:
            self._tabs.active = name

    def on_tabbed_content_tab_activated(self, message: TabbedContent.TabActivated) -> None:
        name = message.pane.id or RUNNING.name
        # Another one may have been chosen since. A table that gets the focus brings its tab to the front, so
        # only that of the chosen tab may.
        if name == self._tabs.active != self._view.tab:
            self._page = None
            self._look(tab=name, states=_TABS[name].states, selected=0)
            self._below.update("")
            self._table().focus()
            self._draw(datetime.now(UTC))

    def on_row_table_beyond(self, message: RowTable.Beyond) -> None:
        if message.step > 0 and self._next is not None and self._page is not None:
            self._pages.append(self._view.cursor)
            self._page = None
            self._look(cursor=int(self._next))
        elif message.step < 0 and self._pages:
            self._page = None
            self._look(cursor=self._pages.pop())

    def on_data_table_row_highlighted(self, message: DataTable.RowHighlighted) -> None:
        selected = self._table().selected()
        if self._view.states and selected.isdigit():
            self._view = msgspec.structs.replace(self._view, selected=int(selected))
            self._feed.look(self._view, now=False)
            if self._status is not None and self._page is not None:
                tab = _TABS[self._view.tab]
                self._below.update(self._line(tab, self._status, self._table().row_count))

    def on_data_table_row_selected(self, message: DataTable.RowSelected) -> None:
        key = self._table().selected()
        if not key:
            return
        if self._view.tab == GROUPS.name:
            self._look(filter=Filter((group_selector(key),)))
            counts = self._status.groups.get(key, {}) if self._status else {}
            by_tab = (tab.name for tab in TABS if any(counts.get(state) for state in tab.states))
            self.action_go(next(by_tab, RUNNING.name))
        else:
            self.push_screen(Details(int(key), self._connect), self._details_closed)
            self._look(details=int(key))

    def _details_closed(self, _result: None) -> None:
        self._look(details=0)

    # ------------------------------------------------------------------ the filter

    def action_filter(self) -> None:
        if len(self.screen_stack) == 1:
            self._field.value = str(self._view.filter)
            self._field.display = True
            self._field.focus()

    def action_clear(self) -> None:
        self._field.display = False
        self._table().focus()
        if self._filtered():
            self._look(filter=Filter())

    def on_input_submitted(self, message: Input.Submitted) -> None:
        try:
            chosen = parse_filter(message.value)
        except BadInput as error:
            self.on_notice(Notice(str(error), wrong=True))
            return
        message.input.display = False
        self._table().focus()
        self._look(filter=chosen)

    # ------------------------------------------------------------------ actions

    def action_act(self, verb: str) -> None:
        """Act on the job or group under the cursor, after a confirmation where needed."""
        if isinstance(self.screen, Details):
            selector, what = str(self.screen.job), f"job {self.screen.job}"
        elif not (key := self._table().selected()):
            return
        elif self._view.tab == GROUPS.name:
            selector, what = group_selector(key), f"all jobs of group {harmless(key)}"
        else:
            selector, what = key, f"job {key}"

        def go(sure: bool | None) -> None:
            if sure:
                self._feed.act(verb, [selector], _DONE[verb])

        if verb in _ASKED or selector.startswith("@"):
            question = Text(f"{verb.capitalize()} {what}?", "bold")
            jobs = self._page.jobs if self._page else []
            for job in jobs:
                if str(job.id) == selector:
                    question.append("\n").append_text(command(job))
            self.push_screen(Question(question), go)
        else:
            go(True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only the tables can be filtered."""
        return not (action == "filter" and len(self.screen_stack) > 1)

    def action_help(self) -> None:
        if not isinstance(self.screen, Help | Question):
            self.push_screen(Help())

    def action_interrupt(self) -> None:
        self.exit(return_code=130)
