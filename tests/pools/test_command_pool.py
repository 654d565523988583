"""The engine `command` passes the conformance suite of delegated pools."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.pools import site as sites
from tests.pools.conformance import PoolConformance
from tests.pools.site import Site


@pytest.fixture(scope="module")
def one_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with sites.site(tmp_path_factory.mktemp("far"), {"far": {"slots": 8, "max_runners": 4}}) as made:
        made.up()
        yield made
        made.judge()


@pytest.fixture
def site(one_site: Site) -> Iterator[Site]:
    """No job, runner or lie of this test is left to the next one."""
    yield one_site
    one_site.clear()


class TestCommandPool(PoolConformance):
    pass
