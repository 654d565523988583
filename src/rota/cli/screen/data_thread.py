"""The thread that fetches the data of the screens, over its own connection, so that they never block.

It asks only for what is on the screen: counts, and one page of rows.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from textual.message import Message

from rota.cli.render.text import count, few_ranges
from rota.cli.screen.row_filter import Filter, found_in
from rota.errors import NoManager, RotaError

if TYPE_CHECKING:
    from rota.client.blocking import Client
    from rota.wire.views import JobPage, JobView, ReasonView, StatusView

EVERY_S: Final = 1.0
PAGE: Final = 200
#: Number of rows that are searched for text, from the current page on.
SEARCHED: Final = 2000
#: A slow manager is asked less often: at most this share of the time is spent on requests.
_SHARE: Final = 0.1
#: Reasons for waiting are asked for job by job: this many per refresh, and again after this age.
_REASONS: Final = 4
_REASON_AGE_S: Final = 10.0


def next_refresh(begun: float, ended: float, *, is_gone: bool) -> float:
    """When to ask again. A slow manager is spared; one that is gone answers nothing, and is looked for soon."""
    return ended + EVERY_S if is_gone else begun + max(EVERY_S, (ended - begun) / _SHARE)


class TableView(Struct, frozen=True):
    """Which tab, page, filter and job the user looks at."""

    tab: str = "running"
    states: tuple[str, ...] = ()  #: empty: no jobs, only groups
    filter: Filter = Filter()
    cursor: int = 0  #: the page begins after this job
    selected: int = 0  #: this one first
    details: int = 0  #: the job that is shown alone


class Refreshed(Message):
    """New data for the screens."""

    def __init__(self, view: TableView, status: StatusView, page: JobPage | None, job: JobView | None) -> None:
        super().__init__()
        self.view = view
        self.status = status
        self.page = page
        self.job = job


class ManagerLost(Message):
    """The manager does not answer; an empty text means that it does again."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class Notice(Message):
    """The result of an action, or an error, for a notification."""

    def __init__(self, text: str, *, wrong: bool = False) -> None:
        super().__init__()
        self.text = text
        self.wrong = wrong


class Refresher(threading.Thread):
    """Asks the manager about once a second and posts the answers; carries out actions in between."""

    def __init__(self, client: Client, post: Callable[[Message], object]) -> None:
        super().__init__(name="feed", daemon=True)
        self._client = client
        self._post = post
        self._view = TableView()
        self._orders: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._over = False
        self._gone = False
        self._reasons: dict[int, tuple[float, ReasonView | None]] = {}

    def look(self, view: TableView, *, now: bool = True) -> None:
        """Show this from now on; at once, or when it is time."""
        self._view = view
        if now:
            self._orders.put(None)

    def act(self, verb: str, selectors: list[str], done: str) -> None:
        """Act on jobs and post how many changed; `done` is the participle for the notice."""
        self._orders.put(lambda: self._act(verb, selectors, done))

    def stop(self) -> None:
        """Come to an end soon."""
        self._over = True
        self._orders.put(None)

    def run(self) -> None:
        while not self._over:
            begun = time.monotonic()
            self._try(self._refresh)
            self._serve(next_refresh(begun, time.monotonic(), is_gone=self._gone))

    def _serve(self, until: float) -> None:
        """Carry out actions until the next refresh is due or the view changes."""
        while not self._over:
            try:
                order = self._orders.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                return
            if order is not None:
                self._try(order)
            if self._orders.empty():
                return

    def _try(self, what: Callable[[], None]) -> None:
        try:
            if self._gone:
                self._client.connect()
            what()
        except NoManager as error:
            self._gone = True
            self._post(ManagerLost(error.message))
        except RotaError as error:
            self._post(Notice(str(error), wrong=True))
        else:
            if self._gone:
                self._gone = False
                self._post(ManagerLost(""))

    def _act(self, verb: str, selectors: list[str], done: str) -> None:
        acted = self._client.act(verb, *selectors)
        ids = f": {few_ranges(acted.changed, 4)}" if acted.changed else ""
        if acted.changed or not acted.missing:
            self._post(Notice(f"{count(len(acted.changed), 'job')} {done}{ids}", wrong=not acted.changed))
        else:
            self._post(Notice(f"there is no job {few_ranges(acted.missing, 4)}", wrong=True))

    def _refresh(self) -> None:
        view = self._view
        status = self._client.status()
        page = self._page(view) if view.states else None
        job = self._client.job(view.details) if view.details else None
        self._post(Refreshed(view, status, page, job))

    def _page(self, view: TableView) -> JobPage:
        limit = SEARCHED if view.filter.text else PAGE
        page = self._client.jobs(*view.filter.selectors(view.states), limit=limit, cursor=view.cursor)
        if view.filter.text:
            page.jobs = [job for job in page.jobs if found_in(job, view.filter.text)]
            page.next = str(page.jobs[PAGE - 1].id) if len(page.jobs) > PAGE else page.next
            page.jobs = page.jobs[:PAGE]
        self._explain(page.jobs, view.selected)
        return page

    def _explain(self, jobs: list[JobView], selected: int) -> None:
        """Fill in why jobs wait, for a few jobs at a time, since each costs a request."""
        now = time.monotonic()
        asked = 0
        waiting = [job for job in jobs if job.state == "ready" and job.reason is None]
        for job in sorted(waiting, key=lambda job: job.id != selected):
            at, reason = self._reasons.get(job.id, (0.0, None))
            if asked < _REASONS and (not at or now - at > _REASON_AGE_S):
                asked += 1
                try:
                    reason = self._client.job(job.id).reason
                except RotaError as error:
                    if isinstance(error, NoManager):
                        raise
                self._reasons[job.id] = (now, reason)
            job.reason = reason
        shown = {job.id for job in waiting}
        self._reasons = {id: known for id, known in self._reasons.items() if id in shown}
