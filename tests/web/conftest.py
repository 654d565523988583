"""A deployment with something of everything, a browser, and visitors who complain about errors in the console."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from tests.deployment import Deployment, deployment, wait_until
from tests.web.browser import DESK, Visitor, chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """It has a loop of its own while it is there, beside which no other can be run in this process."""
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Running, waiting, held, blocked and failed jobs; one with a hostile name."""
    with deployment(tmp_path_factory.mktemp("busy"), http="on", cores="8") as made:
        made.start()
        made.ok(
            "add", "-g", "align", "--retries", "0", "-", input="".join(f"echo sample {n}\n" for n in range(40))
        )
        made.ok("add", "-g", "broken", "--retries", "0", "--", "sh", "-c", "echo before; echo wrong >&2; exit 3")
        made.ok("add", "-g", "slow", "-n", HOSTILE, "--", "sh", "-c", "echo hello; sleep 1000")
        made.ok("add", "-g", "later", "--after", "42", "--", "echo", "later")
        made.ok("add", "-g", "later", "--after", "afterok:41", "--", "echo", "never")
        wait_until(lambda: made.states().get(42) == "running", "the slow job runs")
        wait_until(lambda: made.states().get(41) == "failed", "the broken job has failed")
        yield made


#: Text that must be shown as it is, wherever it appears.
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visitor]]:
    """Visitors, who must have seen no error."""
    made: list[Visitor] = []

    def new(rota: Deployment, **options: object) -> Visitor:
        visitor = Visitor(browser, **options)
        made.append(visitor)
        visitor.log_in(rota)
        return visitor

    yield new
    for visitor in made:
        visitor.close()
        assert visitor.complaints == []
        assert len(visitor.asked) == 1, f"it talked to {visitor.asked}"


@pytest.fixture(scope="module")
def staying(browser: Browser, busy: Deployment) -> Iterator[Visitor]:
    """One visitor for all tests of a file: logging in takes longer than most tests."""
    made = Visitor(browser)
    made.log_in(busy)
    yield made
    made.close()


@pytest.fixture
def guest(staying: Visitor) -> Iterator[Visitor]:
    """The visitor who stays, in a window of the usual size, and who must have seen no error in this test."""
    yield staying
    staying.page.set_viewport_size(DESK)
    complaints, staying.complaints = staying.complaints, []
    assert complaints == []
    assert len(staying.asked) == 1, f"it talked to {staying.asked}"
