"""Pictures of every page, light and dark, on a desk and on a phone, of a deployment with real jobs."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, expect

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.deployment import Deployment, deployment, wait_until
from tests.web.browser import Visitor, chromium

from rota.core.pipelines.definition import Definition, Element, Stage

_PAGES = {
    "overview": "/",
    "jobs": "/jobs",
    "job": "/jobs/{failed}",
    "running": "/jobs/{running}",
    "groups": "/groups",
    "pipelines": "/pipelines",
    "pipeline": "/pipelines/{pipeline}",
    "dependencies": "/graph?select=@tree",
    "gantt": "/gantt",
    "machines": "/machines",
    "limits": "/policy",
    "queues": "/policy?tab=queues",
    "learning": "/learning",
    "accounting": "/accounting",
}
_SIZES = {"desk": (1280, 800), "phone": (390, 844)}
_WORK = (
    "python3 -c 'import random, time; x = bytearray(int(random.lognormvariate(3, 0.6)) << 20); "
    "time.sleep(random.lognormvariate(-1, 0.7))' # sample {n}"
)


def busy(rota: Deployment, seconds: float) -> None:
    """A past: samples come in at a changing rate."""
    until = time.monotonic() + seconds
    batch = 0
    while time.monotonic() < until:
        batch += 1
        samples = range(random.randint(4, 40))
        lines = "".join(f"sleep 0.{random.randint(1, 9)} # batch {batch} sample {n}\n" for n in samples)
        rota.ok("add", "-g", "samples", "--project", random.choice(["atlas", "genome"]), "-", input=lines)
        time.sleep(random.uniform(1, 6))


def fill(rota: Deployment) -> dict[str, int]:
    """Jobs of many kinds, some of which stay."""
    rota.ok("limit", "licence:3")
    rota.ok("queue", "add", "night", "--priority", "1")
    lines = "".join(_WORK.format(n=n) + "\n" for n in range(160))
    rota.ok("add", "-g", "align", "--retries", "1", "--mem", "200M", "--time", "10s", "--project", "atlas", "-",
            input=lines)  # fmt: skip
    calls = rota.json("add", "-g", "call", "--limit", "licence", "--project", "atlas", "-",
            input="".join(f"sleep {3 + n % 5} # call {n}\n" for n in range(60)))["added"]  # fmt: skip
    rota.ok("add", "-g", "qc", "--retries", "0", "-",
            input="".join(f"echo checking {n}; sleep 0.2; test $(({n}%9)) != 0\n" for n in range(45)))  # fmt: skip
    rota.ok("add", "-g", "report", "--after", f"afterok:{calls[0]}", "--", "echo", "report")
    (running,) = rota.json(
        "add", "-g", "train", "-n", "train model", "--cpus", "2", "--mem", "2G", "--",
        "sh", "-c", "i=0; while :; do i=$((i+1)); echo \"epoch $i  loss 0.$((900 - i % 900))\"; sleep 0.4; done",
    )["added"]  # fmt: skip
    for n in range(14):
        rota.ok("add", "-g", "mesh", "-q", "night", "-l", f"core={1 + n % 4},walltime={20 + 7 * n}m", "--",
                "sleep", str(60 + n))  # fmt: skip
    rota.ok("add", "-g", "course", "-l", "core=6,walltime=45m", "-r", "now+2h", "--", "sleep", "60")
    tree: list[int] = []
    for n in range(12):
        parent = tree[(n - 1) // 3] if tree else calls[0]
        tree += rota.json("add", "-g", "tree", "-n", f"part {n}", "--time", f"{n + 1}m", "--after", str(parent),
                          "--", "sleep", "20")["added"]  # fmt: skip
    wait_until(lambda: len(rota.states("state=complete")) > 90, "some are done")
    wait_until(lambda: bool(rota.states("state=failed")), "some have failed")
    failed = next(iter(rota.states("state=failed")))
    return {"failed": failed, "running": running, "pipeline": flow(rota)}


def flow(rota: Deployment) -> int:
    """A session of a pipeline in which some elements fail."""
    stages = (
        Stage(name="fetch", run="sleep 0.2"),
        Stage(name="build", run="sleep 1; test {name} != part-7", imperative=True, needs_dependencies=True),
        Stage(name="pack", run="sleep 0.1"),
    )
    elements = tuple(Element(f"part-{n}", ((n - 1) // 2,) if n else ()) for n in range(36))
    with rota.client() as client:
        definition = Definition(stages=stages, elements=elements)
        session = client.start_pipeline(definition, file="/src/parts.yaml", cwd=str(rota.work)).session
        wait_until(lambda: bool(client.pipeline(session=session).failures), "something is blocked")
    return session


def take(browser: Browser, rota: Deployment, ids: dict[str, int], out: Path) -> None:
    for size, (width, height) in _SIZES.items():
        for theme in ("light", "dark"):
            visitor = Visitor(browser, viewport={"width": width, "height": height}, color_scheme=theme)
            visitor.log_in(rota)
            for name, path in _PAGES.items():
                visitor.go(path.format(**ids))
                expect(visitor.page.locator("main")).to_be_visible()
                time.sleep(1.5)  # charts are drawn, and the stream has told what it has
                visitor.page.screenshot(path=str(out / f"{name}-{size}-{theme}.png"))
            if visitor.complaints:
                print(f"{size} {theme}: {visitor.complaints}", file=sys.stderr)
            visitor.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, nargs="?", default=Path("build/screenshots"))
    parser.add_argument("--past", type=float, default=20, help="seconds of work before the pictures are taken")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as top,
        deployment(Path(top), http="on", cores="12") as rota,
        chromium() as browser,
    ):
        rota.start()
        busy(rota, options.past)
        take(browser, rota, fill(rota), options.out)
    print(f"{len(list(options.out.glob('*.png')))} pictures in {options.out}")


if __name__ == "__main__":
    main()
