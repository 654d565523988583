"""The page about pipelines works when it is pasted, and the example in the README does what is said there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deployment import Deployment, deployment
from tests.system.tours import LONGEST_S, TOP, paste

_STAGES = ("track", "fetch", "build", "test", "pack")
_SHOP = "/tmp/shop"


@pytest.mark.timeout(LONGEST_S + 10)
def test_the_page_about_pipelines_works_when_pasted(tmp_path: Path) -> None:
    paste(
        tmp_path,
        page="docs/pipelines.md",
        begin="# Pipelines",
        expected=["exit status 1", "1 changed"],
    )


def test_the_readme_and_the_page_show_the_same_example() -> None:
    assert _example("README.md") == _example("docs/pipelines.md")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.timeout(LONGEST_S + 10)
def test_the_example_builds_a_project_and_after_a_change_only_what_needs_it(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    with deployment(tmp_path) as rota:
        generate, first, change = _example("README.md")
        _shell(rota, generate.replace(_SHOP, str(shop)))
        assert len(list(shop.glob("upstream/*/*"))) == 24 * 8
        everything = _ran(rota, shop)
        assert {stage: len(everything[stage]) for stage in _STAGES} == dict.fromkeys(_STAGES, 24)
        assert len(list(shop.glob("packages/*.tar.gz"))) == 24
        assert _ran(rota, shop) == {stage: set() for stage in _STAGES}
        edit, again = change.replace(_SHOP, str(shop)).split("; ")
        assert first.replace(_SHOP, str(shop)) == again == f"rota pipeline run {shop}/pipeline.yaml"
        _shell(rota, edit)
        need_it = {"report", "client"}
        assert _ran(rota, shop) == {"track": {"report"}} | dict.fromkeys(_STAGES[1:], need_it)


def test_the_python_of_the_page_runs_a_pipeline(tmp_path: Path) -> None:
    (code,) = re.findall(
        r"^```python\n(.*?)^```$", (TOP / "docs/pipelines.md").read_text(), re.MULTILINE | re.DOTALL
    )
    with deployment(tmp_path) as rota:
        rota.start()
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=rota.work,
            env=rota.env,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "{'base': 'ok', 'app': 'ok'}"
        assert (rota.work / "app.built").exists()


def _example(page: str) -> list[str]:
    """The lines about the example."""
    blocks = re.findall(
        r"^```sh\n(cp -r examples/pipeline .*?)^```$", (TOP / page).read_text(), re.MULTILINE | re.DOTALL
    )
    assert len(blocks) == 1, page
    return str(blocks[0]).splitlines()


def _shell(rota: Deployment, command: str) -> None:
    subprocess.run(["bash", "-c", command], cwd=TOP, env=rota.env, check=True, timeout=60)


def _ran(rota: Deployment, shop: Path) -> dict[str, set[str]]:
    """Stage → elements that it took, in a session that ends well."""
    events = [
        json.loads(line) for line in rota.ok("pipeline", "run", f"{shop}/pipeline.yaml", "--json").splitlines()
    ]
    assert events[-1]["event"] == "summary"
    ended = [event for event in events if event["event"] == "ended"]
    return {stage: {event["element"] for event in ended if event["stage"] == stage} for stage in _STAGES}
