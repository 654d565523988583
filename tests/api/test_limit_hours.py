"""Hours of a limit over HTTP: given, kept and taken away."""

from __future__ import annotations

from tests.api.conftest import Site


def _limit(site: Site) -> tuple[int | None, str | None]:
    (found,) = (each for each in site.user.get("/api/v1/limits").json if each["name"] == "night")
    return found["capacity"], found["window"]


def test_empty_hours_mean_all_day_and_none_mean_as_they_are(site: Site) -> None:
    def change(**body: object) -> None:
        answer = site.admin.ask("PUT", "/api/v1/limits/night", body)
        assert answer.status < 300, answer

    change(capacity=2, window="22:00-06:00")
    assert _limit(site) == (2, "22:00-06:00")
    change(capacity=3)
    assert _limit(site) == (3, "22:00-06:00")
    change(window="")
    assert _limit(site) == (3, None)
    change(window="08:00-09:00")
    assert _limit(site) == (3, "08:00-09:00")
    change(capacity=1, window="")
    assert _limit(site) == (1, None)


def test_hours_of_a_limit_that_is_not_there_cannot_be_taken_away(site: Site) -> None:
    assert site.admin.ask("PUT", "/api/v1/limits/nobody", {"window": ""}).status == 404
