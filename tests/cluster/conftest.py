"""Clusters that tests of one file share, or have for themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster, cluster


@pytest.fixture(scope="module")
def four_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Four nodes that work, for all tests of a file."""
    with cluster(tmp_path_factory.mktemp("four"), hosts=4) as made:
        made.up()
        yield made
        made.judge()


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The same with two."""
    with cluster(tmp_path_factory.mktemp("two"), hosts=2) as made:
        made.up()
        yield made
        made.judge()


@pytest.fixture
def four(four_nodes: Cluster) -> Iterator[Cluster]:
    """Four nodes; no job of this test is left to the next one."""
    yield four_nodes
    four_nodes.clear()


@pytest.fixture
def two(two_nodes: Cluster) -> Iterator[Cluster]:
    """Two nodes; no job of this test is left to the next one."""
    yield two_nodes
    two_nodes.clear()
