"""Learning: what jobs asked for and used."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.deployment import Deployment, wait_until
from tests.web.browser import Visitor

#: The middle of the first point that is drawn in the colour of what is done, in pixels of the page; or null.
_POINT = """place => {
    const drawn = place.querySelector("canvas");
    const wanted = getComputedStyle(document.documentElement).getPropertyValue("--run").trim();
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(wanted.slice(at, at + 2), 16));
    const ratio = drawn.width / drawn.clientWidth;
    const pen = new OffscreenCanvas(drawn.width, drawn.height).getContext("2d", { willReadFrequently: true });
    pen.drawImage(drawn, 0, 0);
    const { data } = pen.getImageData(0, 0, drawn.width, drawn.height);
    const like = (at) => Math.abs(data[at] - r) + Math.abs(data[at + 1] - g) + Math.abs(data[at + 2] - b) < 60;
    for (let at = 0; at < data.length; at += 4)
        if (data[at + 3] > 200 && like(at)) {
            const { x, y } = drawn.getBoundingClientRect();
            const pixel = at / 4;
            return [x + (pixel % drawn.width) / ratio, y + Math.floor(pixel / drawn.width) / ratio + 2];
        }
    return null;
}"""


@pytest.fixture(scope="module", autouse=True)
def learned(busy: Deployment) -> None:
    """Thirty jobs that asked for much more than they used, and others."""
    # More than their runner has, or their own peak is not known.
    lines = "".join(f"head -c 60M /dev/zero | tail -c 60M | wc -c # {n}\n" for n in range(30))
    busy.ok("add", "-g", "known", "--learn", "known", "--mem", "200M", "--time", "10m", "-", input=lines)
    busy.ok(
        "add", "-g", "others", "--learn", "others", "--mem", "100M", "--time", "1m", "-", input="echo a\necho b\n"
    )
    busy.ok("wait", "@known", "@others")
    wait_until(lambda: {"known", "others"} <= set(observed(busy)), "they are learned")


def observed(rota: Deployment) -> dict[str, int]:
    return {each["name"]: each["observations"] for each in rota.json("learn")["groups"]}


def scatter(page: Page, what: str) -> Locator:
    return page.get_by_role("img", name=re.compile(f"^{what} that "))


def test_groups_are_those_of_rota_learn(busy: Deployment, guest: Visitor) -> None:
    guest.go("/learning")
    known = observed(busy)
    expect(guest.page.get_by_text(f"{len(known)} learning groups, the most seen first")).to_be_visible()
    for name, number in known.items():
        link = guest.page.get_by_role("main").get_by_role(
            "link", name=re.compile(rf"^{re.escape(name)} {number} jobs?\b")
        )
        expect(link).to_be_visible()


def test_every_job_is_a_point_that_leads_to_it(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/learning?group=known")
    expect(scatter(page, "Memory")).to_have_attribute("aria-label", "Memory that 30 jobs were given and used")
    expect(scatter(page, "Time")).to_have_attribute("aria-label", "Time that 30 jobs were given and used")
    expect(page.get_by_text(re.compile("^The newest 30 attempts; .* A point opens its job."))).to_be_visible()
    scatter(page, "Memory").scroll_into_view_if_needed()
    x, y = wait_until(lambda: scatter(page, "Memory").evaluate(_POINT), "a point is drawn")
    page.mouse.move(x, y)
    page.mouse.click(x, y)
    expect(page).to_have_url(re.compile(r"/jobs/\d+$"))
    job = int(page.url.rpartition("/")[2])
    assert busy.json("show", str(job))["group"] == "known"


def test_what_was_asked_for_is_not_what_was_given(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/learning?group=known")
    page.get_by_role("button", name="asked for").click()
    expect(scatter(page, "Time")).to_have_attribute("aria-label", "Time that 30 jobs asked for and used")
    found = busy.json("learn", "known")["groups"][0]["points"]
    assert {each["asked_time_s"] for each in found} == {600}
    assert {each["asked_mem"] for each in found} == {200 << 20}


def test_a_group_is_found_by_its_name(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/learning")
    page.get_by_label("Find a group").fill("othe")
    expect(page).to_have_url(re.compile(r"/learning\?q=othe$"))
    expect(page.get_by_role("heading", name="others", exact=True)).to_be_visible()
    expect(scatter(page, "Time")).to_have_attribute("aria-label", re.compile("2 jobs"))


def test_a_group_is_forgotten_after_a_question(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/learning?group=others")
    page.get_by_role("button", name="Forget").click()
    page.get_by_role("dialog", name="Forget others?").get_by_role("button", name="Cancel").click()
    assert "others" in observed(busy)
    page.get_by_role("button", name="Forget").click()
    page.get_by_role("dialog", name="Forget others?").get_by_role("button", name="Forget it").click()
    expect(page.get_by_text("others: forgotten")).to_be_visible()
    expect(page.get_by_role("main").get_by_role("link", name=re.compile("^others "))).to_be_hidden()
    assert "others" not in observed(busy)
