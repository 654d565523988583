"""A real browser: Debian's Chromium, driven by Playwright, that keeps what a user's console would show."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests.deployment import Deployment

#: The browser must ask nobody but the manager; and root cannot have its sandbox.
_ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-default-apps",
)  # fmt: skip

#: The window of somebody at a desk.
DESK: ViewportSize = {"width": 1280, "height": 720}

# How long to wait for what must appear; the bound only ends a hanging test.
expect.set_options(timeout=20_000)


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """One browser, for all tests of a process."""
    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if path is None:
        pytest.fail("Chromium is missing; install it: apt-get install chromium-headless-shell")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


class Visitor:
    """Somebody with a browser window of their own, and what went wrong in it."""

    def __init__(self, browser: Browser, **options: object) -> None:
        self.context: BrowserContext = browser.new_context(**{"locale": "en-GB", "viewport": DESK, **options})  # type: ignore[arg-type]
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.asked: set[str] = set()  #: hosts that the page talked to
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        self.page.on("request", lambda request: self.asked.add(request.url.split("/")[2]))

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def log_in(self, rota: Deployment) -> None:
        """Follow the link of `rota manager ui`."""
        link = rota.ok("manager", "ui", "--no-open").strip()
        self.page.goto(link)
        expect(self.page.get_by_role("navigation", name="Pages")).to_be_visible()

    def go(self, path: str) -> None:
        """Open an address of the page anew, as from a bookmark."""
        self.page.goto(self.page.url.split("/", 3)[0] + "//" + self.page.url.split("/", 3)[2] + path)

    def close(self) -> None:
        self.context.close()


#: Checks a page against the rules of accessibility; `make web` installs it.
_AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"


def violations(page: Page) -> list[str]:
    """What axe finds wrong with this page, in light and in dark colours."""
    found = []
    page.emulate_media(reduced_motion="reduce")  # no colour is halfway to another
    if not page.evaluate("'axe' in window"):
        page.evaluate(_AXE.read_text())
    before = page.evaluate("document.documentElement.dataset.theme")
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        told = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        found += [
            f"{theme}: {each['id']}: {node['html'][:150]}" for each in told["violations"] for node in each["nodes"]
        ]
    page.evaluate("theme => { document.documentElement.dataset.theme = theme }", before)
    return found


_UNNAMED = re.compile(
    r"^ *- (?:button|link|checkbox|textbox|searchbox|combobox|spinbutton|tab)(?: \[[^]]*])*:?$", re.M
)


def unnamed(page: Page) -> list[str]:
    """What can be used on this page, but has no name that a screen reader could say."""
    return _UNNAMED.findall(page.locator("body").aria_snapshot())
