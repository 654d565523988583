"""Functions called from Python: `call`, `Executor`, `rota.job`, and what cannot be sent."""

from __future__ import annotations

import asyncio
import functools
import importlib
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest

import rota as package
from rota.errors import BadInput
from tests.deployment import Deployment, deployment, wait_until

_MODULE = """
import os, time
import rota

def square(x):
    return x * x

def divide(a: int, b: int) -> float:
    return a / b

def nap(mark):
    open(mark, "w").close()
    time.sleep(600)

def told(path):
    return open(path).read()

def tell(path, text):
    time.sleep(0.2)
    open(path, "w").write(text)

class Strange(Exception):
    pass

def strange():
    raise Strange("who knows")

class Thing:
    def method(self):
        return 1

@rota.job(cpus=2, retries=0, mem="300M", limits=["licence:2"])
def heavy(x: int) -> int:
    return x + 1
"""


@pytest.fixture
def rota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    with deployment(tmp_path, grace="1s") as made:
        (made.work / "deeds.py").write_text(_MODULE)
        monkeypatch.syspath_prepend(made.work)
        monkeypatch.chdir(made.work)
        made.start()
        yield made
        sys.modules.pop("deeds", None)


@pytest.fixture
def deeds(rota: Deployment) -> Any:
    return importlib.import_module("deeds")


@pytest.fixture
def executor(rota: Deployment) -> Iterator[package.Executor]:
    with package.Executor(rota.home) as made:
        yield made


def test_call_waits_for_what_the_function_returns(rota: Deployment, deeds: Any) -> None:
    with rota.client() as manager:
        assert manager.call("math:hypot", 3, 4) == 5.0
        assert manager.call(deeds.square, 7) == 49
        assert manager.call(deeds.divide, 1, b=2) == 0.5
        assert manager.call(deeds.square, 7) == 49  # again: another job
        assert len(manager.jobs().jobs) == 4


def test_call_raises_what_the_function_raised(rota: Deployment, deeds: Any) -> None:
    with rota.client() as manager:
        with pytest.raises(ZeroDivisionError, match="division by zero") as raised:
            manager.call(deeds.divide, 1, 0)
        cause = raised.value.__cause__
        assert isinstance(cause, package.CallFailed)
        assert "return a / b" in cause.traceback
        with pytest.raises(package.CallFailed, match="who knows") as failed:
            manager.call(deeds.strange)
        assert failed.value.type == "deeds.Strange"
        assert failed.value.job == 2


def test_the_asynchronous_client_calls_too(rota: Deployment, deeds: Any) -> None:
    async def both() -> list[Any]:
        async with await package.connect_async(rota.home) as manager:
            return await asyncio.gather(manager.call(deeds.square, 2), manager.call(deeds.square, 3))

    assert asyncio.run(both()) == [4, 9]


def test_submit_map_and_as_completed(executor: package.Executor, deeds: Any) -> None:
    future = executor.submit(deeds.square, 3)
    assert future.result() == 9
    assert future.job == 1
    assert list(executor.map(deeds.square, range(10))) == [x * x for x in range(10)]
    assert list(executor.map(deeds.divide, [2, 4], [1, 2])) == [2.0, 2.0]
    some = [executor.submit(deeds.square, x) for x in range(5)]
    assert sorted(each.result() for each in futures.as_completed(some)) == [0, 1, 4, 9, 16]
    assert futures.wait([executor.submit(deeds.square, 1)]).not_done == set()


def test_map_with_chunks_makes_few_jobs(executor: package.Executor, deeds: Any, rota: Deployment) -> None:
    assert list(executor.map(deeds.square, range(1001), chunksize=100)) == [x * x for x in range(1001)]
    with rota.client() as manager:
        assert len(manager.jobs().jobs) == 11


def test_a_failure_reaches_its_future_only(executor: package.Executor, deeds: Any) -> None:
    good, bad = executor.submit(deeds.divide, 1, 2), executor.submit(deeds.divide, 1, 0)
    assert isinstance(bad.exception(), ZeroDivisionError)
    assert good.result() == 0.5
    found = executor.map(deeds.divide, [1, 1, 1], [1, 0, 1])
    assert next(found) == 1.0
    with pytest.raises(ZeroDivisionError):
        next(found)


def test_futures_as_arguments_and_as_dependencies(executor: package.Executor, deeds: Any, tmp_path: Path) -> None:
    assert executor.submit(deeds.square, executor.submit(deeds.square, 2)).result() == 16
    path = str(tmp_path / "told")
    first = executor.submit(deeds.tell, path, "hello")
    assert executor.submit_with({"after": [first]}, deeds.told, path).result() == "hello"
    failed = executor.submit(deeds.square, executor.submit(deeds.divide, 1, 0))
    assert isinstance(failed.exception(), ZeroDivisionError)


def test_cancel_ends_a_call_that_runs(
    executor: package.Executor, deeds: Any, tmp_path: Path, rota: Deployment
) -> None:
    mark = tmp_path / "began"
    future = executor.submit(deeds.nap, str(mark))
    wait_until(mark.exists, "it runs")
    assert future.cancel()
    assert future.cancelled()
    assert futures.wait([future], timeout=60).done == {future}
    wait_until(lambda: rota.state(future.job or 0) == "cancelled", "the job has ended")
    done = executor.submit(deeds.square, 1)
    done.result()
    assert not done.cancel()


def test_a_job_that_is_killed_by_somebody_fails_its_future(
    executor: package.Executor, deeds: Any, tmp_path: Path, rota: Deployment
) -> None:
    mark = tmp_path / "began"
    future = executor.submit(deeds.nap, str(mark))
    wait_until(mark.exists, "it runs")
    rota.ok("kill", str(future.job))
    error = future.exception()
    assert isinstance(error, package.CallFailed)
    assert error.type == "kill_requested"


def test_shutdown_accepts_nothing_more_and_may_cancel(rota: Deployment, deeds: Any, tmp_path: Path) -> None:
    executor = package.Executor(rota.home)
    future = executor.submit(deeds.nap, str(tmp_path / "began"))
    executor.shutdown(cancel_futures=True)
    assert future.cancelled()
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(deeds.square, 1)


def test_an_executor_outlives_its_manager(executor: package.Executor, deeds: Any, rota: Deployment) -> None:
    import os
    import signal

    assert executor.submit(deeds.square, 2).result() == 4
    os.kill(rota.manager_pid(), signal.SIGKILL)
    rota.start()
    assert executor.submit(deeds.square, 3).result() == 9


def test_a_decorated_function_has_its_fields_and_runs_here_when_called(rota: Deployment, deeds: Any) -> None:
    rota.ok("limit", "licence:4")
    assert deeds.heavy(1) == 2
    with package.Executor(rota.home, group="mine") as executor:
        future = executor.submit(deeds.heavy, 2)
        assert future.result() == 3
    with rota.client() as manager:
        job = manager.job(future.job or 0)
    assert job.asked is not None
    assert (job.asked.cpus, job.asked.mem_bytes, job.group, job.limits) == (2, 300 << 20, "mine", ["licence:2"])


def test_functions_of_a_program_are_found_in_its_file(rota: Deployment) -> None:
    (rota.work / "program.py").write_text(
        "import rota\n"
        "def double(x):\n    return 2 * x, __name__\n"
        "if __name__ == '__main__':\n"
        "    with rota.Executor() as executor:\n"
        "        print(executor.submit(double, 4).result())\n"
    )
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=rota.work, env=rota.env, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[8, '__mp_main__']\n", "")
    typed = "import rota\ndef f():\n    return 1\nrota.Executor().submit(f)\n"
    done = subprocess.run(
        [sys.executable, "-c", typed], cwd=rota.work, env=rota.env, capture_output=True, text=True, check=False
    )
    assert "f is in no file" in done.stderr


def test_modules_beside_a_program_are_found_from_elsewhere(rota: Deployment, tmp_path: Path) -> None:
    (rota.work / "tools" / "parts").mkdir(parents=True)
    (rota.work / "tools" / "parts" / "__init__.py").write_text("def triple(x):\n    return 3 * x\n")
    (rota.work / "tools" / "program.py").write_text(
        "import rota, parts\n"
        "if __name__ == '__main__':\n"
        "    with rota.Executor(env={'COLOUR': 'red'}) as executor, rota.connect() as manager:\n"
        "        print(executor.submit(parts.triple, 4).result(), manager.call(parts.triple, 5))\n"
        "        print(executor.submit('os:getenv', 'COLOUR').result())\n"
    )
    done = subprocess.run(
        [sys.executable, "tools/program.py"], cwd=rota.work, env=rota.env, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("12 15\nred\n", "")


def test_what_cannot_be_sent_is_refused_with_what_to_do_instead(executor: package.Executor, deeds: Any) -> None:
    def inner() -> int:
        return 1

    for function, arguments, words in (
        (lambda: 1, (), "a lambda has no name.*write it with 'def'"),
        (inner, (), "is inside a function.*write it with 'def'"),
        (functools.partial(deeds.square, 1), (), "pass the function and all its arguments"),
        (deeds.Thing().method, (), "needs its object"),
        (deeds.square, ({1, 2},), r"of type set, which is not JSON; pass numbers"),
        (deeds.square, ([1, {"a": b"x"}],), r"\['a'\] is of type bytes"),
        (deeds.square, (float("nan"),), "is nan, which JSON cannot say"),
        (deeds.square, (1 << 70,), "more than 64 bits"),
        (deeds.square, ({1: 2},), "has the key 1, which is not a text"),
        (deeds.square, (len,), "pass the function's name"),
        (deeds.square, (), "missing a required argument"),
        (deeds.divide, ("one", 2), "argument 'a': Expected `int`, got `str`"),
        ("nofunction", (), "names no function"),
        (3, (), "is no function with a name"),
    ):
        with pytest.raises(BadInput, match=f"(?s){words}"):
            executor.submit(function, *arguments)
    itself: list[Any] = []
    itself.append(itself)
    with pytest.raises(BadInput, match="contains itself"):
        executor.submit(deeds.square, itself)


def test_a_field_that_does_not_exist_is_refused_at_once(rota: Deployment) -> None:
    with pytest.raises(BadInput, match="there is no such field"):
        package.Executor(rota.home, colour="red")


def test_thousands_of_calls_come_back(executor: package.Executor, deeds: Any) -> None:
    begun = time.monotonic()
    assert sum(executor.map(deeds.square, range(1000))) == sum(x * x for x in range(1000))
    print(f"{1000 / (time.monotonic() - begun):.0f} calls a second")
