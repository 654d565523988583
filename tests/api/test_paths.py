"""Which operation a path means, whatever it is made of."""

from __future__ import annotations

from typing import Any

import pytest

from rota.api.paths import Paths
from rota.api.routes import OPERATIONS
from rota.errors import NotFound


class _Counted(Paths):
    looks = 0

    def _matching(self, parts: list[str], *, named: bool) -> Any:
        self.looks += 1
        return super()._matching(parts, named=named)


@pytest.mark.parametrize("part", [b"/", b"/a", b"%2f/"])
def test_a_path_of_many_parts_costs_no_more_than_the_longest_that_there_is(part):
    paths = _Counted(OPERATIONS)
    with pytest.raises(NotFound):
        paths.find("GET", b"/api" + part * 1000)
    assert paths.looks < 20


def test_a_name_at_the_end_may_have_any_number_of_slashes():
    name = "/".join("abc" * 1000)
    operation, place = Paths(OPERATIONS).find("GET", f"/api/v1/learning/{name}%2F".encode())
    assert (operation.path, place) == ("/learning/{name}", {"name": name + "/"})


def test_what_is_no_name_has_no_slashes():
    paths = Paths(OPERATIONS)
    assert paths.find("GET", b"/api/v1/jobs/1/why")[0].path == "/jobs/{id}/why"
    for path in (b"/api/v1/jobs/1/why/", b"/api/v1/jobs/1/why/2/3/4/5/6/7/8", b"/api/v1/status/x"):
        with pytest.raises(NotFound):
            paths.find("GET", path)
