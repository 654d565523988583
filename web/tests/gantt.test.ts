import { describe, expect, test } from "vitest";
import type { GanttAttempt, GanttHost, GanttJob, GanttPast, GanttView } from "../src/api/types";
import { faultOf, jobOf, NOTHING } from "../src/pages/gantt/asking";
import { gangLines, together } from "../src/pages/gantt/gangs";
import { extent, hit, layout, rowAt } from "../src/pages/gantt/layout";
import { ended, ghostOf, has, inUse, kindOf, planOf, spans, unusable } from "../src/pages/gantt/model";
import { paint, type Scene } from "../src/pages/gantt/paint";
import { hash, legend, shade } from "../src/pages/gantt/palette";
import { asked, around, HOUR, iso, pan, ticks, trackOf, windowOf, zoom } from "../src/pages/gantt/scale";

const NOW = Date.parse("2026-03-02T12:00:00Z");
const at = (minutes: number): string => new Date(NOW + minutes * 60_000).toISOString();

const host = (name: string, resources: string, more: Partial<GanttHost> = {}): GanttHost => ({
  host: name, resources, state: "alive", drain: false, connected: true, usable: true, available_until: null, ...more,
});

const job = (id: number, resources: string | null, from: number, to: number | null, more: Partial<GanttJob> = {}): GanttJob => ({
  id, name: "", user: "ada", project: "", queue: "default", group: "g", state: from <= 0 ? "running" : "ready", type: [],
  start: at(from), end: to === null ? null : at(to), resources, host: null, reserved: false, ...more,
});

const view = (hosts: GanttHost[], jobs: GanttJob[]): GanttView => ({
  now: at(0), plan: true, hosts, jobs, left_out: 0, waiting: [], waiting_total: 0, later: 0, earlier: 0, closed: {}, past: null,
});

describe("gangs", () => {
  const hosts = [host("a", "1-2"), host("b", "3-4"), host("c", "5-6")];
  const made = planOf(view(hosts, [
    job(1, "1-2", 0, 9, { gang: "test" }), job(2, "5", 0.01, 5, { gang: "test" }), job(3, "3", 0, 9), job(4, "4", 30, 40, { gang: "test" }), job(5, "6", 0, 9, { gang: "alone" }),
  ]));
  test("members that begin together are joined over all their rows", () => {
    const laid = layout(made, new Set());
    const [line, ...others] = gangLines(laid);
    expect(others).toEqual([]);
    expect(line).toMatchObject({ start: NOW, members: [13, 26 * 2 + 2 + 5.5] });
    expect(line?.ends).toEqual(line?.members);
    expect(gangLines(laid)).toBe(gangLines(laid));
  });
  test("a later execution of the same name is another gang", () => {
    const bar = (id: number) => made.bars.find((each) => each.job.id === id)!;
    expect(together(bar(1), bar(2))).toBe(true);
    expect(together(bar(1), bar(4))).toBe(false);
    expect(together(bar(3), bar(3))).toBe(false);
  });
  test("are found by the filter", () => expect(made.bars.filter((each) => has(each, "alone")).map((each) => each.job.id)).toEqual([5]));
  test("a broken host is said to be so", () => expect(unusable(host("a", "1", { condition: "broken", usable: false }))).toBe("broken"));
});

describe("the past", () => {
  const attempt = (id: number, lines: [string, string][], from: number, to: number, more = {}): GanttAttempt => ({
    id, attempt: 1, name: "", user: "ada", project: "", queue: "default", group: "g", state: "complete", type: [], start: at(from), end: at(to),
    host: lines[0]?.[0] ?? "a", cores: 1, resources: null, lines, exact: true, ...more,
  });
  const past = (more: Partial<GanttPast>): GanttPast => ({
    until: at(0), attempts: [], merged: [], slice_s: null, states: [], lines: {}, total: 0, removed: 0, ...more,
  });

  test("what ended is on the cores that it had, and on its host where it had none", () => {
    const attempts = [attempt(1, [["a", "1-2"], ["b", "0"]], -30, -10), attempt(2, [], -20, -5)];
    const plan = planOf({ ...view([host("a", "1-4"), host("b", "5-8")], [job(3, "1", -5, 5)]), past: past({ attempts }) });
    expect(plan.rows[0]?.pieces.map((piece) => [piece.bar.job.id, piece.bar.kind, piece.cores])).toEqual([
      [1, "ended", [[1, 2]]], [2, "ended", []], [3, "running", [[0, 0]]],
    ]);
    expect(plan.rows[1]?.pieces.map((piece) => piece.cores)).toEqual([[[0, 0]]]);
    expect(plan.past).toBe(true);
  });

  test("a host that is gone has the lines that it needs", () => {
    const gone = host("old", "", { state: "gone", usable: false });
    const plan = planOf({ ...view([gone], []), past: past({ attempts: [attempt(1, [["old", "0-2"]], -9, -1)], lines: { old: 3 } }) });
    expect([plan.rows[0]?.cores, plan.rows[0]?.down]).toEqual([3, "gone"]);
  });

  test("behind the bars is what a host did, and how much of it was in use", () => {
    const states = [{ host: "a", start: at(-60), end: at(-30), state: "drained" }];
    const merged = [{ host: "a", start: at(-20), end: at(-10), cores: 2, attempts: 900, failed: 1 }];
    const laid = layout(planOf({ ...view([host("a", "1-4")], []), past: past({ states, merged, slice_s: 600, total: 900 }) }), new Set());
    const window = { from: NOW - HOUR, to: NOW };
    expect(hit(laid, window, 600, 100, 10)?.bar.about).toBe("drained");
    expect(hit(laid, window, 600, 450, 10)?.bar).toMatchObject({ kind: "merged", share: 0.5, about: "2 of 4 cores in use; 900 attempts ended, 1 failed" });
    expect(hit(laid, window, 600, 580, 10)).toBeNull();
  });

  test("a slider reaches further back than what is shown, and to it", () => {
    for (const window of [around(NOW, HOUR), around(NOW, 168 * HOUR), { from: NOW - 40 * 24 * HOUR, to: NOW - 39 * 24 * HOUR }, around(NOW + 99 * HOUR, HOUR)]) {
      const track = trackOf(window, NOW);
      expect(track.from).toBeLessThan(window.from);
      expect(track.to).toBeGreaterThanOrEqual(window.to);
      expect(track.to - track.from).toBeGreaterThan(6 * (window.to - window.from));
    }
  });
});

describe("hours", () => {
  test("a host has the closed times of its hours", () => {
    const found = planOf({ ...view([host("a", "1", { hours: "h" }), host("b", "2")], []), closed: { h: [[at(5), at(9)]] } });
    expect(found.rows.map((row) => row.closed)).toEqual([[[NOW + 300_000, NOW + 540_000]], []]);
  });
});

describe("resources", () => {
  test("ids are read as spans", () => {
    expect(spans("1-8,17")).toEqual([[1, 8], [17, 17]]);
    expect(spans(null)).toEqual([]);
  });

  test("a job over two hosts is a piece of each, by the places of its cores there", () => {
    const plan = planOf(view([host("a", "1-4"), host("b", "5-8")], [job(1, "3-6", -1, 5)]));
    expect(plan.rows.map((row) => row.pieces.map((piece) => piece.cores))).toEqual([[[[2, 3]]], [[[0, 1]]]]);
  });

  test("a host whose ids are in parts has its cores in one row", () => {
    const plan = planOf(view([host("a", "1-2,10-11"), host("b", "3-9")], [job(1, "2,10", -1, 5), job(2, "1-11", 1, 2)]));
    expect(plan.rows[0]?.cores).toBe(4);
    expect(plan.rows[0]?.pieces.map((piece) => piece.cores)).toEqual([[[1, 2]], [[0, 3]]]);
    expect(plan.rows[1]?.pieces.map((piece) => piece.cores)).toEqual([[[0, 6]]]);
  });

  test("a job without cores of its own is still shown on its host", () => {
    const plan = planOf(view([host("a", "1-2")], [job(1, null, -1, 5, { host: "a" })]));
    expect(plan.rows[0]?.pieces.map((piece) => [piece.bar.job.id, piece.cores])).toEqual([[1, []]]);
  });

  test("only what runs now counts as in use", () => {
    const plan = planOf(view([host("a", "1-8")], [job(1, "1-2", -5, 5), job(2, "3", -5, null), job(3, "4-8", 1, 9)]));
    expect(plan.rows.map((row) => inUse(row, NOW))).toEqual([3]);
  });

  test("a host says why nothing starts there", () => {
    expect(unusable(host("a", "1"))).toBe("");
    expect(unusable(host("a", "1", { connected: false, usable: false }))).toBe("no runner");
    expect(unusable(host("a", "1", { drain: true }))).toBe("drained");
    expect(unusable(host("a", "1", { state: "absent", connected: false }))).toBe("absent");
  });

  test("a reservation is reserved until it runs", () => {
    expect(kindOf(job(1, "1", 5, 9, { reserved: true }))).toBe("reserved");
    expect(kindOf(job(1, "1", -5, 9, { reserved: true }))).toBe("running");
    expect(kindOf(job(1, "1", 5, 9))).toBe("planned");
  });
});

test("a job is found by its id and by who and what it is", () => {
  const [bar] = planOf(view([host("a", "1")], [job(42, "1", 0, 9, { name: "Align-3", type: ["besteffort"] })])).bars;
  expect(["#42", "align", "ada", "running", "besteffort"].map((words) => bar && has(bar, words))).toEqual([true, true, true, true, true]);
  expect(bar && has(bar, "grace")).toBe(false);
});

describe("what if", () => {
  const asking = {
    start: at(0), end: at(30), resources: "1-2", hosts: ["a"], alternative: 1, reason: null, moves: [], request: null, behind: 0, expected_reason: null, notices: [],
  };

  test("a job that would never start has no bar", () => {
    expect(ghostOf({ ...asking, start: null })).toBeNull();
  });

  test("besteffort jobs in its place are named, others are not", () => {
    const ghost = ghostOf(asking);
    const jobs = [
      job(1, "2", -5, 60, { type: ["besteffort"] }), job(2, "3", -5, 60, { type: ["besteffort"] }), job(3, "1", -5, 60),
      job(4, "1", 31, 60, { type: ["besteffort"] }),
    ];
    const plan = planOf(view([host("a", "1-4")], jobs), ghost);
    expect(ghost && ended(plan, ghost)).toEqual([1]);
  });

  test("empty fields are not sent", () => {
    expect(jobOf(NOTHING)).toEqual({});
    expect(jobOf({ ...NOTHING, cpus: "2", mem: " 4G ", type: "besteffort, idempotent", request: "core=1\ncore=2" })).toEqual({
      cpus: 2, mem: "4G", type: ["besteffort", "idempotent"], request: ["core=1", "core=2"],
    });
  });

  test("an error of the parser is shown at its field and column", () => {
    expect(faultOf("field 'request': expected a number after 'foo=' at column 12, found ','", "write foo=1")).toEqual({
      field: "request", column: 12, text: "expected a number after 'foo=' at column 12, found ','", hint: "write foo=1",
    });
    expect(faultOf("the manager cannot be reached", "")).toMatchObject({ field: null, column: null });
    expect(faultOf("field 'mem': 'xx' is not a size", "")).toMatchObject({ field: "mem", column: null });
  });
});

describe("time", () => {
  test("zooming keeps the moment under the pointer where it is", () => {
    const before = { from: 0, to: HOUR };
    const after = zoom(before, 0.5, HOUR / 4);
    expect(after.to - after.from).toBe(HOUR / 2);
    expect((HOUR / 4 - after.from) / (after.to - after.from)).toBeCloseTo(0.25);
  });

  test("zooming ends somewhere in both directions", () => {
    let near = { from: 0, to: HOUR };
    let far = near;
    for (let n = 0; n < 200; n += 1) {
      near = zoom(near, 0.5, HOUR / 2);
      far = zoom(far, 2, HOUR / 2);
    }
    expect(near.to - near.from).toBeGreaterThan(1000);
    expect(far.to - far.from).toBeLessThan(10 * 366 * 24 * HOUR);
  });

  test("small moves ask the manager for the same range, which holds the window", () => {
    const window = around(NOW, 6 * HOUR);
    const range = asked(window);
    expect(range.from).toBeLessThan(window.from);
    expect(range.to).toBeGreaterThan(window.to);
    expect(asked(pan(window, 60_000))).toEqual(range);
  });

  test("ticks are inside the window and far enough apart to be read", () => {
    for (const span of [30_000, HOUR, 6 * HOUR, 24 * HOUR, 168 * HOUR, 4000 * HOUR]) {
      const window = around(NOW, span);
      const found = ticks(window, 1000);
      expect(found.length).toBeGreaterThan(1);
      expect(found.every((tick) => tick.at >= window.from && tick.at <= window.to)).toBe(true);
      expect((found.length - 1) * 72).toBeLessThanOrEqual(1000);
    }
  });

  test("a range of the address comes back, and nonsense is not one", () => {
    const query = new URLSearchParams({ from: iso(NOW), to: iso(NOW + HOUR) });
    expect(windowOf(query)).toEqual({ from: NOW, to: NOW + HOUR });
    expect(windowOf(new URLSearchParams("from=x&to=y"))).toBeNull();
    expect(windowOf(new URLSearchParams({ from: iso(NOW), to: iso(NOW - HOUR) }))).toBeNull();
  });
});

describe("places", () => {
  const plan = planOf(view([host("a", "1-4"), host("b", "5-8")], [job(1, "1-2", 0, 30), job(2, "3-4", 0, 30), job(3, "5", 30, 60)]));
  const window = { from: NOW, to: NOW + HOUR };

  test("what is drawn at a place is found there", () => {
    const laid = layout(plan, new Set());
    for (const row of laid.rows)
      for (const { bar, cores } of row.row.pieces) {
        const [y, height] = extent(row, cores[0]?.[0] ?? 0, cores[0]?.[1] ?? 0);
        const x = (((bar.start + bar.end) / 2 - window.from) / HOUR) * 800;
        expect(hit(laid, window, 800, x, y + height / 2)?.bar.job.id).toBe(bar.job.id);
      }
    expect(hit(laid, window, 800, 700, 5)).toBeNull();
  });

  test("an open host is taller, and the rows below it move", () => {
    const closed = layout(plan, new Set());
    const open = layout(plan, new Set(["a"]));
    expect(open.rows[0]?.height).toBeGreaterThan(closed.rows[0]?.height ?? Infinity);
    expect(open.rows[1]?.top).toBe(open.rows[0]?.height);
    expect(rowAt(open, (open.rows[0]?.height ?? 0) + 1)).toBe(1);
  });
});

describe("ten thousand jobs", () => {
  const hosts = Array.from({ length: 100 }, (_, n) => host(`n${n}`, `${n * 10 + 1}-${n * 10 + 10}`));
  const jobs = Array.from({ length: 10_000 }, (_, n) => job(n + 1, `${(n % 1000) + 1}`, Math.floor(n / 1000) * 10, Math.floor(n / 1000) * 10 + 10));

  test("all have their place, each on one host", () => {
    const plan = planOf(view(hosts, jobs));
    expect(plan.rows.map((row) => row.pieces.length)).toEqual(Array.from({ length: 100 }, () => 100));
  });
});

/** A pen that keeps where it filled rectangles of a colour, and draws nothing. */
function pen(): { pen: CanvasRenderingContext2D; bars: number[] } {
  const bars: number[] = [];
  const target: Record<string, unknown> = { fillStyle: "" };
  const fake = new Proxy(target, {
    get: (_, name) => {
      if (name === "fillRect") return (_x: number, y: number) => { if (target["fillStyle"] === "bar") bars.push(y); };
      if (name === "measureText") return () => ({ width: 50 });
      return name in target ? target[String(name)] : () => undefined;
    },
  });
  return { pen: fake as unknown as CanvasRenderingContext2D, bars };
}

describe("drawing", () => {
  const hosts = Array.from({ length: 100 }, (_, n) => host(`n${n}`, `${n * 10 + 1}-${n * 10 + 10}`));
  const jobs = Array.from({ length: 10_000 }, (_, n) => job(n + 1, `${(n % 1000) + 1}`, Math.floor(n / 1000) * 10, Math.floor(n / 1000) * 10 + 10));
  const ink = "ink";
  const scene = (more: Partial<Scene>): Scene => ({
    past: false, layout: layout(planOf(view(hosts, jobs)), new Set()), view: { from: NOW, to: NOW + 100 * 60_000 }, width: 800, height: 700, scroll: 0, now: NOW,
    dim: null, moved: new Set(), hover: null,
    inks: {
      surface: ink, stripe: ink, line: ink, strong: ink, text: ink, faint: ink, accent: ink, warn: ink, bad: ink, onBar: ink, merged: ink, gang: ink, did: {}, hatch: ink, down: ink,
      font: "", of: () => "bar",
    },
    ...more,
  });
  const drawn = (more: Partial<Scene>): number[] => {
    const fake = pen();
    paint(fake.pen, scene(more));
    return fake.bars;
  };

  test("rows that cannot be seen cost nothing", () => {
    const bars = drawn({});
    expect(bars.length).toBeGreaterThan(2000);
    expect(bars.length).toBeLessThan(3000);
    expect(Math.max(...bars)).toBeLessThan(730);
  });

  test("a picture that is high enough has all of them", () => {
    expect(drawn({ height: 5000 }).length).toBe(10_000);
  });

  test("what is scrolled or moved away is not drawn", () => {
    expect(drawn({ view: { from: NOW + 200 * 60_000, to: NOW + 300 * 60_000 } })).toEqual([]);
    expect(drawn({ scroll: 1300 }).length).toBeLessThan(3000);
    expect(drawn({ view: { from: NOW + 41 * 60_000, to: NOW + 49 * 60_000 }, height: 5000 }).length).toBe(1000);
  });
});

describe("colours", () => {
  test("a word has one colour, always", () => {
    expect(shade("render", "light")).toBe(shade("render", "light"));
    expect(hash("render")).not.toBe(hash("align"));
    expect(shade("render", "light")).not.toBe(shade("render", "dark"));
  });

  test("the legend begins with the most frequent", () => {
    const plan = planOf(view([host("a", "1-9")], [job(1, "1", 0, 9, { user: "bob" }), job(2, "2", 0, 9), job(3, "3", 0, 9)]));
    expect(legend(plan.bars, "user")).toEqual([["ada", 2], ["bob", 1]]);
  });
});
