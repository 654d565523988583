"""Settings that all tests share."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import is_hypothesis_test, settings

from tests.dose import PATIENCE
from tests.warm import COLD

pytest_plugins = ["tests.pace", "tests.groups", "tests.leftovers"]

settings.load_profile("rota")

# Real deployments start thousands of processes: without bytecode each of them would compile all of Rota again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What a script or `nohup` runs in the background ignores these, and so would all processes of the tests that
# send them.
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is made here stays to the end: the collector of garbage need not look at it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        drawn = isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)
        if drawn or item.get_closest_marker("hypothesis"):
            item.add_marker(pytest.mark.timeout(PATIENCE))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A test with the mark `cold`, and fixtures that are made for it, begin real processes."""
    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("cold"):
            patch.setenv(COLD, "1")
        return (yield)
