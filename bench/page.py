"""The dashboard in a real browser over a million jobs.

Frames are the gaps between animation frames; the same loop on an empty page of the same browser tells what this
machine can do at all, and every phase is compared with it. For the phases with jobs running, the empty page is
measured while the same jobs run. What the manager needed for an answer is taken from the browser's own timing.
The Gantt picture gets a plan that is made up from the manager's answer, as nothing here has so many hosts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Route, sync_playwright

import rota
from api import Api, Reader
from deployment import Deployment, print_table, save
from history import write_finished

_HTTP = {"ROTA_HTTP": "on", **({"ROTA_STATIC": os.environ["ROTA_STATIC"]} if "ROTA_STATIC" in os.environ else {})}
_ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-default-apps", "--enable-precise-memory-info",
)  # fmt: skip
_FAILED_EVERY = 10
#: Jobs that are added and have not ended: enough for the runner, few enough that new rows end while they are seen.
_BACKLOG = 100
PARTS = ("jobs", "live", "gantt")

#: What is measured inside of the page; before any script of its own.
_SCRIPT = """
(() => {
  const REAL = ".job-rows .job-row:not(.pending)";
  const frame = () => new Promise(requestAnimationFrame);
  const bench = window.bench = {
    record() {
      const kept = { gaps: [], tasks: [], on: true };
      let last = null;
      const step = (at) => {
        if (!kept.on) return;
        if (last !== null) kept.gaps.push(at - last);
        last = at;
        requestAnimationFrame(step);
      };
      requestAnimationFrame(step);
      kept.watch = new PerformanceObserver((list) => {
        for (const each of list.getEntries()) kept.tasks.push(each.duration);
      });
      kept.watch.observe({ type: "longtask" });
      bench.kept = kept;
      performance.clearResourceTimings();
      performance.setResourceTimingBufferSize(100000);
    },
    recorded() {
      const { gaps, tasks, watch } = bench.kept;
      bench.kept.on = false;
      watch.disconnect();
      const asked = bench.asked("/api/v1/");
      return { gaps, tasks, requests: asked.length, heap: performance.memory.usedJSHeapSize,
               nodes: document.querySelectorAll("*").length };
    },
    async drag(ms) {
      const box = document.querySelector(".job-table");
      const begun = performance.now();
      for (let part = 0; part < 1; ) {
        part = Math.min(1, (performance.now() - begun) / ms);
        box.scrollTop = part * box.scrollHeight;
        await frame();
      }
      return document.querySelectorAll(".job-rows .job-row").length;
    },
    async jump(part) {
      const box = document.querySelector(".job-table");
      const { left, top, width, height } = box.getBoundingClientRect();
      performance.clearResourceTimings();
      const begun = performance.now();
      box.scrollTop = part * (box.scrollHeight - box.clientHeight);
      for (;;) {
        await frame();
        await frame();
        const row = document.elementFromPoint(left + width / 2, top + height / 2)?.closest(".job-row");
        if (row && row.matches(REAL)) return { took: performance.now() - begun, answer: bench.answer() };
      }
    },
    asked: (path) => performance.getEntriesByType("resource").filter((each) => each.name.includes(path)),
    /** How long the newest answer with jobs took. */
    answer() {
      return bench.asked("/api/v1/jobs?").at(-1)?.duration ?? null;
    },
    /** From the last key or click until every row there is has this text in this column. */
    async until(column, text) {
      let begun = null;
      const heard = () => { begun = performance.now(); };
      for (const name of ["input", "click"]) addEventListener(name, heard, true);
      performance.clearResourceTimings();
      for (;;) {
        await frame();
        if (begun === null) continue;
        const all = [...document.querySelectorAll(".job-rows .job-row")];
        const fits = (row) => row.matches(REAL) && row.querySelector(column)?.textContent.includes(text);
        if (all.length && all.every(fits)) break;
      }
      await frame();
      for (const name of ["input", "click"]) removeEventListener(name, heard, true);
      return { took: performance.now() - begun, answer: bench.answer() };
    },
    /** When each job was first shown as ended; or when each number of ended jobs was first shown. */
    watchRows() {
      bench.seen = {};
      const step = () => {
        for (const row of document.querySelectorAll(REAL)) {
          const id = row.querySelector(".id")?.textContent;
          const ended = row.querySelector(".state")?.textContent.includes("complete");
          if (id && ended && !(id in bench.seen)) bench.seen[id] = Date.now();
        }
        bench.after = requestAnimationFrame(step);
      };
      step();
    },
    watchNumber() {
      bench.seen = {};
      const step = () => {
        const number = document.querySelector(".ov-tile.good b")?.textContent.replaceAll(",", "");
        if (number && !(number in bench.seen)) bench.seen[number] = Date.now();
        bench.after = requestAnimationFrame(step);
      };
      step();
    },
    watched() {
      cancelAnimationFrame(bench.after);
      return bench.seen;
    },
  };
  /** When the first row was painted. */
  bench.firstRow = new Promise((done) => {
    const look = new MutationObserver(() => {
      if (!document.querySelector(REAL)) return;
      look.disconnect();
      requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
    });
    look.observe(document, { childList: true, subtree: true });
  });
})();
"""

Frames = dict[str, float]


@contextmanager
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if path is None:
        raise SystemExit("Chromium is missing; install it: apt-get install chromium-headless-shell")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


def empty_page(browser: Browser) -> Page:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.add_init_script(_SCRIPT)
    page.goto("about:blank")
    return page


def link(deployment: Deployment) -> str:
    """With which a browser is logged in, once."""
    return deployment.run("manager", "ui", "--no-open").stdout.decode().strip()


def log_in(browser: Browser, deployment: Deployment) -> Page:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(60_000)
    page.add_init_script(_SCRIPT)
    page.goto(link(deployment))
    page.get_by_role("navigation", name="Pages").wait_for()
    return page


def go(page: Page, path: str) -> None:
    at = urlsplit(page.url)
    page.goto(f"{at.scheme}://{at.netloc}{path}")


@contextmanager
def traced(page: Page) -> Iterator[list[float]]:
    """CPU seconds of each task of the pages' main threads: what others on this machine do is not in them."""
    tasks: list[float] = []
    browser = page.context.browser
    assert browser
    browser.start_tracing(page=page, categories=["toplevel"])
    yield tasks
    events = json.loads(browser.stop_tracing())["traceEvents"]
    mains = {
        (each["pid"], each["tid"])
        for each in events
        if each["name"] == "thread_name" and each["args"]["name"] == "CrRendererMain"
    }
    tasks += [
        each["tdur"] / 1e6
        for each in events
        if each["name"].endswith("RunTask") and "tdur" in each and (each["pid"], each["tid"]) in mains
    ]


@contextmanager
def frames(page: Page, into: dict[str, Frames], name: str) -> Iterator[None]:
    """What the page's frames were like meanwhile, in seconds."""
    before = page.evaluate("performance.memory.usedJSHeapSize")
    load = os.getloadavg()[0]
    with traced(page) as tasks:
        page.evaluate("bench.record()")
        begun = time.monotonic()
        yield
        took = time.monotonic() - begun
        told = page.evaluate("bench.recorded()")
    gaps = sorted(each / 1000 for each in told["gaps"])
    into[name] = {
        "seconds": took,
        "median": statistics.median(gaps),
        "p99": gaps[len(gaps) * 99 // 100],
        "worst": gaps[-1],
        "over_200ms": sum(each > 0.2 for each in gaps),
        "long_tasks": len(told["tasks"]),
        "longest_task": max(told["tasks"], default=0) / 1000,
        "longest_task_cpu": max(tasks, default=0),
        "cpu_share": sum(tasks) / took,
        "requests": told["requests"],
        "heap_before": before,
        "heap_after": told["heap"],
        "nodes": told["nodes"],
        "load": load,
    }


def idle(browser: Browser, into: dict[str, Frames], name: str, seconds: float) -> None:
    page = empty_page(browser)
    with frames(page, into, name):
        page.wait_for_timeout(1000 * seconds)
    page.close()


# ------------------------------------------------------------------ a list of a million


def fill(deployment: Deployment, finished: int, live: int) -> None:
    """The live jobs wait for a limit that is closed, so that others can run."""
    deployment.start()
    deployment.run("manager", "stop")
    write_finished(deployment.home, finished, failed_every=_FAILED_EVERY)
    deployment.start()
    deployment.run("limit", "closed:0")
    commands = deployment.top / "commands"
    with commands.open("w") as file:
        file.writelines(f"sleep 900.{number:07d}\n" for number in range(live))
    deployment.run("add", "--quiet", "--limit", "closed", str(commands), stdout=subprocess.DEVNULL)


def first_rows(page: Page, api: Api) -> dict[str, Any]:
    """Seconds from the navigation to the first row that is painted, beside bare answers."""
    found: dict[str, Any] = {"healthz": statistics.median(api.seconds("/healthz") for _ in range(30))}
    cdp = page.context.new_cdp_session(page)
    for name in ("cold", "again", "once more"):
        if name == "cold":
            cdp.send("Network.clearBrowserCache")
        with traced(page) as tasks:
            go(page, "/jobs")
            page.evaluate("bench.firstRow")
        found[f"{name}: cpu"] = sum(tasks)
        found[name], found[f"{name}: answer"] = (
            each / 1000 for each in page.evaluate("bench.firstRow.then((at) => [at, bench.answer()])")
        )
    found["bare answer"] = statistics.median(api.seconds("/jobs") for _ in range(5))
    return found


def scroll(page: Page, into: dict[str, Frames], seconds: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with frames(page, into, "dragging the bar"):
        found["rows in the page"] = page.evaluate("ms => bench.drag(ms)", 1000 * seconds)
    page.evaluate("bench.jump(0)")
    box = page.locator(".job-table").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    with frames(page, into, "turning the wheel"):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            page.mouse.wheel(0, 300)
            page.wait_for_timeout(16)
    go(page, "/jobs")  # nothing is kept of where the bar was
    page.evaluate("bench.firstRow")
    for part, name in (
        (0.5, "jump to the middle"),
        (1, "jump to the end"),
        (0.3, "jump to a third"),
        (0, "jump to the top"),
    ):
        with frames(page, into, name):
            found[name] = page.evaluate("part => bench.jump(part)", part)
    return found


def narrow(page: Page, into: dict[str, Frames]) -> dict[str, Any]:
    """Seconds from the last key or click to the new rows."""
    found: dict[str, Any] = {}
    search = page.get_by_role("searchbox", name="Text in the name or command")
    for name, column, text in (
        ("search, many", ".what", "number 12"),
        ("search, one", ".what", "900.0000123"),
        ("state failed", ".state", "failed"),
        ("state ready", ".state", "ready"),
    ):
        with frames(page, into, name):
            page.evaluate("([column, text]) => { bench.waiting = bench.until(column, text); }", [column, text])
            if column == ".what":
                search.click()
                search.press_sequentially(text, delay=40)
            else:
                page.get_by_role("group", name="States").get_by_role("button", name=text).click()
            found[name] = page.evaluate("bench.waiting")
        go(page, "/jobs")
        page.evaluate("bench.firstRow")
    return found


# ------------------------------------------------------------------ while jobs run


class Jobs(threading.Thread):
    """Adds short jobs at a rate, or as fast as they end."""

    def __init__(self, deployment: Deployment, rate: float, seconds: float) -> None:
        super().__init__(daemon=True)
        self.ids: list[int] = []
        self.rate = 0.0  #: ends a second
        self._home, self._wanted, self._seconds = deployment.home, rate, seconds

    def run(self) -> None:
        with rota.connect(self._home) as client:

            def ended() -> int:
                counts = client.status().counts
                return counts.get("complete", 0) + counts.get("failed", 0)

            before, begun = ended(), time.monotonic()
            while (now := time.monotonic()) < begun + self._seconds:
                room = _BACKLOG - len(self.ids) + ended() - before
                due = min(room, int((now - begun) * self._wanted) - len(self.ids))
                if due > 0:
                    word = time.monotonic_ns()
                    self.ids += client.add([f"true {word} {number}" for number in range(due)]).added
                time.sleep(0.05)
            self.rate = (ended() - before) / (time.monotonic() - begun)


def _ends(api: Api, ids: list[int]) -> dict[int, float]:
    found: dict[int, float] = {}
    for low in range(ids[0], ids[-1] + 1, 1000):
        page = api.get(f"/jobs?select={low}-{min(low + 999, ids[-1])}&limit=1000")
        found |= {
            job["id"]: datetime.fromisoformat(job["ended_at"]).timestamp()
            for job in page["jobs"]
            if job["ended_at"]
        }
    return found


def while_running(
    browser: Browser, deployment: Deployment, page: Page, into: dict[str, Frames], *, rate: float, seconds: float
) -> dict[str, Any]:
    api, reader = Api(deployment), Reader(Api(deployment))
    reader.start()
    found: dict[str, Any] = {}

    def phase(name: str, where: Page) -> Jobs:
        changes, jobs = reader.changes, Jobs(deployment, rate, seconds)
        jobs.start()
        with frames(where, into, name):
            where.wait_for_timeout(1000 * seconds)
        jobs.join()
        found[name] = {"jobs_per_s": jobs.rate, "changes_per_s": (reader.changes - changes) / seconds}
        time.sleep(4)
        return jobs

    blank = empty_page(browser)
    page.goto("about:blank")  # the dashboard must not follow the jobs while the empty page is measured
    phase("empty page, jobs running", blank)
    blank.close()

    page.goto(link(deployment))
    go(page, "/jobs")
    page.evaluate("bench.firstRow")
    page.evaluate("bench.watchRows()")
    jobs = phase("Jobs, jobs running", page)
    seen, ends = page.evaluate("bench.watched()"), _ends(api, jobs.ids)
    late = [at / 1000 - ends[int(id)] for id, at in seen.items() if int(id) in ends]
    found["Jobs, jobs running"] |= {"seen": len(late), "late": statistics.median(late), "late_worst": max(late)}

    go(page, "/")
    page.locator(".ov-tile.good b").wait_for()
    before = api.get("/status")["counts"]["complete"]
    page.evaluate("bench.watchNumber()")
    jobs = phase("Overview, jobs running", page)
    at = sorted(_ends(api, jobs.ids).values())
    late = [
        shown / 1000 - at[int(number) - before - 1]
        for number, shown in page.evaluate("bench.watched()").items()
        if before < int(number) <= before + len(at)
    ]
    found["Overview, jobs running"] |= {
        "seen": len(late),
        "late": statistics.median(late),
        "late_worst": max(late),
    }
    return found


# ------------------------------------------------------------------ the Gantt picture


def _multiplied(view: dict[str, Any], bars: int, hosts: int, cores: int) -> dict[str, Any]:
    """An answer with one host and one job as if there were many: pairs of cores, one job after another."""
    host, job = view["hosts"][0], view["jobs"][0]
    now, pairs = datetime.fromisoformat(view["now"]), hosts * cores // 2
    view["hosts"] = [
        {**host, "host": f"n{at + 1}", "resources": f"{at * cores + 1}-{(at + 1) * cores}"} for at in range(hosts)
    ]
    view["jobs"] = []
    for number in range(bars):
        turn, pair = divmod(number, pairs)
        start = now + timedelta(minutes=60 * turn + pair % 7)
        one = {**job, "id": number + 1, "group": f"g{number % 12}", "resources": f"{2 * pair + 1}-{2 * pair + 2}"}
        one |= {"start": start.isoformat(), "end": (start + timedelta(minutes=50)).isoformat(), "host": None}
        view["jobs"].append(one if turn == 0 else one | {"state": "ready"})
    return view


def _ended(view: dict[str, Any]) -> dict[str, Any]:
    """The same bars as attempts that have ended, each as long before now as it was to be after."""
    now, cores = datetime.fromisoformat(view["now"]), int(view["hosts"][0]["resources"].split("-")[1])
    attempts = []
    for job in view["jobs"]:
        core = int(job["resources"].split("-")[0]) - 1
        place = [f"n{core // cores + 1}", f"{core % cores}-{core % cores + 1}"]
        start, end = (now - (datetime.fromisoformat(job[word]) - now) for word in ("end", "start"))
        kept = ("id", "name", "user", "project", "queue", "group", "type", "resources")
        words = {word: job[word] for word in kept}
        attempts.append(words | {
            "attempt": 1, "state": "failed" if job["id"] % 20 == 0 else "complete", "start": start.isoformat(),
            "end": end.isoformat(), "host": place[0], "cores": 2.0, "lines": [place], "exact": True,
            "suspended_s": 0.0,
        })  # fmt: skip
    view["jobs"] = []
    view["past"] = {"until": view["now"], "attempts": attempts, "merged": [], "slice_s": None, "states": [],
                    "lines": {}, "total": len(attempts), "removed": 0}  # fmt: skip
    return view


def gantt(
    browser: Browser, into: dict[str, Frames], *, bars: int, hosts: int, cores: int, seconds: float, past: bool
) -> dict[str, Any]:
    with Deployment(settings=_HTTP) as deployment:
        deployment.start()
        deployment.run("add", "-l", "core=1,walltime=1h", "--", "sleep", "3600")
        api = Api(deployment)
        deployment.wait_for(lambda: api.get("/gantt")["jobs"], seconds=60, what="the job")
        answers: dict[str, str] = {}

        def answer(route: Route) -> None:
            url = route.request.url
            if url not in answers:
                made = _multiplied(api.get("/gantt"), bars, hosts, cores)
                answers[url] = json.dumps(_ended(made) if past else made)
            route.fulfill(body=answers[url], content_type="application/json")

        page = log_in(browser, deployment)
        page.route("**/api/v1/gantt?*", answer)
        now = datetime.now(UTC)
        first, last = (f"{now + timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}" for hours in (-20, 4))
        go(page, f"/gantt?from={first}&to={last}" if past else "/gantt?span=1d")
        picture = page.get_by_role("img", name="The plan:")
        picture.wait_for()
        label = picture.get_attribute("aria-label")
        page.wait_for_timeout(2000)
        box = picture.bounding_box()
        assert box
        x, y = box["x"] + box["width"] / 2, box["y"] + 300
        found = {"label": label, "bytes": len(next(iter(answers.values())))}
        with frames(page, into, "Gantt at rest"):
            page.wait_for_timeout(3000)
        with frames(page, into, "Gantt panning"):
            page.mouse.move(x, y)
            page.mouse.down()
            end, step = time.monotonic() + seconds, 0
            while time.monotonic() < end:
                step += 1
                page.mouse.move(x + 300 * ((step % 80) / 40 - 1 if step % 160 < 80 else 1 - (step % 80) / 40), y)
                page.wait_for_timeout(16)
            page.mouse.up()
        with frames(page, into, "Gantt zooming"):
            page.keyboard.down("Control")
            end, step = time.monotonic() + seconds, 0
            while time.monotonic() < end:
                step += 1
                page.mouse.wheel(0, -20 if step % 80 < 40 else 20)
                page.wait_for_timeout(16)
            page.keyboard.up("Control")
        with frames(page, into, "Gantt scrolling"):
            end, step = time.monotonic() + seconds, 0
            while time.monotonic() < end:
                step += 1
                page.mouse.wheel(0, 60 if step % 120 < 60 else -60)
                page.wait_for_timeout(16)
        with frames(page, into, "Gantt hovering"):
            for step in range(int(seconds * 30)):
                page.mouse.move(
                    box["x"] + (37 * step) % box["width"], box["y"] + 50 + (23 * step) % (box["height"] - 60)
                )
                page.wait_for_timeout(16)
        page.close()
        return found


# ------------------------------------------------------------------ what is told


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.0f}"


def print_frames(told: dict[str, Frames]) -> None:
    heading = ["frames, ms", "median", "p99", "worst", "worst × empty", "> 200 ms", "long tasks", "longest",
               "most CPU", "CPU %", "requests", "heap MB", "then", "load"]  # fmt: skip
    rows, empty = [], next(iter(told.values()))
    for name, one in told.items():
        if name.startswith("empty page"):
            empty = one
        rows.append([
            name, *(_ms(one[word]) for word in ("median", "p99", "worst")),
            f"{one['worst'] / empty['worst']:.1f}",
            str(one["over_200ms"]), str(one["long_tasks"]), _ms(one["longest_task"]),
            _ms(one["longest_task_cpu"]), f"{100 * one['cpu_share']:.0f}", str(one["requests"]),
            *(f"{one[word] / 1e6:.0f}" for word in ("heap_before", "heap_after")), f"{one['load']:.1f}",
        ])  # fmt: skip
    print_table([heading, *rows])


def print_times(told: dict[str, Any]) -> None:
    rows = [["seconds", "page", "answer", "CPU", "× healthz"]]
    nothing = told["first"]["healthz"]
    for name in ("cold", "again", "once more"):
        one, answer, cpu = (told["first"][word] for word in (name, f"{name}: answer", f"{name}: cpu"))
        rows.append([f"first row, {name}", f"{one:.3f}", f"{answer:.3f}", f"{cpu:.3f}", f"{one / nothing:.0f}"])
    bare = told["first"]["bare answer"]
    rows.append(["/jobs without a page", "", f"{bare:.3f}", "", f"{bare / nothing:.1f}"])
    rows.append(["/healthz", "", f"{nothing:.4f}", "", "1"])
    for name, one in (told["scroll"] | told["narrow"]).items():
        if isinstance(one, dict):
            answer = "" if one["answer"] is None else f"{one['answer'] / 1000:.3f}"
            rows.append([name, f"{one['took'] / 1000:.3f}", answer, "", f"{one['took'] / 1000 / nothing:.0f}"])
    print_table(rows)
    print(f"{told['scroll']['rows in the page']} rows in the page\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--finished", type=int, default=900_000)
    parser.add_argument("--live", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=500, help="jobs a second, at most, while a page is open")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long they come")
    parser.add_argument("--scroll", type=float, default=10.0, help="seconds of each kind of scrolling")
    parser.add_argument("--bars", type=int, default=10_000, help="planned jobs in the Gantt picture")
    parser.add_argument("--past", action="store_true", help="its bars are attempts that have ended")
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--cores", type=int, default=8, help="of each host")
    parser.add_argument("--only", choices=PARTS, action="append", help="one part, or some of them")
    options = parser.parse_args()
    parts = options.only or PARTS
    result: dict[str, Any] = {"frames": {}}
    told: dict[str, Frames] = result["frames"]
    with chromium() as browser:
        if "jobs" in parts or "live" in parts:
            with Deployment(settings=_HTTP) as deployment:
                fill(deployment, options.finished, options.live)
                idle(browser, told, "empty page", min(5.0, options.scroll))
                page = log_in(browser, deployment)
                if "jobs" in parts:
                    result["first"] = first_rows(page, Api(deployment))
                    result["scroll"] = scroll(page, told, options.scroll)
                    result["narrow"] = narrow(page, told)
                    print_times(result)
                if "live" in parts:
                    result["live"] = while_running(
                        browser, deployment, page, told, rate=options.rate, seconds=options.seconds
                    )
                page.close()
        if "gantt" in parts:
            idle(browser, told, "empty page, before Gantt", min(5.0, options.scroll))
            result["gantt"] = gantt(
                browser, told, bars=options.bars, hosts=options.hosts, cores=options.cores, seconds=options.scroll,
                past=options.past,
            )  # fmt: skip
    print_frames(told)
    for name, one in result.get("live", {}).items():
        late = (
            f"; shown {one['late']:.2f} s after the end (median), {one['late_worst']:.2f} s at worst"
            if "late" in one
            else ""
        )
        print(f"{name}: {one['jobs_per_s']:.0f} jobs/s, {one['changes_per_s']:.0f} changes/s{late}")
    if "gantt" in result:
        print(f"{result['gantt']['label']} ({result['gantt']['bytes']:,} bytes)")
    print(f"\nwritten to {save('page', result)}")


if __name__ == "__main__":
    main()
