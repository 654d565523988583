import { describe, expect, test } from "vitest";
import type { ManagerView, StatusView } from "../src/api/types";
import { begun, ceiling, filled, type Minute, roundTime, total, waits } from "../src/charts/minutes";
import { gathered } from "../src/charts/gathered";
import { needsOf } from "../src/pages/overview/attention";
import { inProgress, pace } from "../src/pages/overview/progress";

const NOW = Date.parse("2026-03-02T12:00:30Z");

const status = (groups: Record<string, Record<string, number>>, more: Partial<StatusView> = {}): StatusView => {
  const counts: Record<string, number> = {};
  for (const states of Object.values(groups)) for (const [state, n] of Object.entries(states)) counts[state] = (counts[state] ?? 0) + n;
  return {
    counts, groups, expected_end: null, rate: null, group_rates: {}, group_expected_end: {}, cores: 2, cores_in_use: 1, paused: false,
    draining: false, disk_full: null, end_reason: null, group_end_reasons: {}, safe_mode: null, ...more,
  };
};

const manager = (more: Partial<ManagerView> = {}): ManagerView => ({
  pid: 1, version: "1", generation: 1, deployment: "d", home: "/home", store: "sqlite", started_at: "2026-03-02T00:00:00Z", address: null,
  http: null, counts: {}, runners: [], live_jobs: 0, resident_bytes: 0, cpu_s: 0, commits: 0, commit_ms: 0, idle_stop_s: null,
  disk_free_bytes: 1e12, paused: false, draining: false, clock_off_s: null, disk_full: null, attention: [], safe_mode: null, bugs: null, ...more,
});

const minute = (at: string, more: Partial<Minute> = {}): Minute => ({
  at, started: 0, complete: 0, failed: 0, cancelled: 0, wait_s: 0, run_s: 0, ...more,
});

describe("what needs a person", () => {
  test("jobs that never fit and reservations in danger", () => {
    const needs = needsOf(status({ a: { ready: 5 } }), manager({
      attention: [
        { kind: "never_fits", jobs: [7, 8, 9, 10], total: 12, message: "never fits: asked 900G mem, largest host has 8G" },
        { kind: "reservation", jobs: [31], total: 1, message: "node3 is drained" },
      ],
    }));
    expect(needs.map(({ title, text, to }) => [title, text, to])).toEqual([
      ["12 jobs never fit", "Asked 900G mem, largest host has 8G. The first: job 7, job 8, job 9.", "/jobs/7"],
      ["Reservation 31 is in danger", "node3 is drained: it would begin with less than it was granted.", "/jobs/31"],
    ]);
  });

  test("who may touch only their own jobs gets no button that would be refused", () => {
    const all = status({ hers: { failed: 2, lost: 1 }, shared: { failed: 3, held: 2 } });
    const mine = status({ shared: { failed: 1 } });
    const needs = needsOf(all, manager(), mine);
    expect(needs.map(({ title, text, deed }) => [title, text, deed?.label])).toEqual([
      ["1 job is lost", expect.any(String), undefined],
      ["shared", "3 jobs failed, 1 of them yours", "Retry"],
      ["hers", "2 jobs failed, none of them yours", undefined],
      ["2 jobs are held, none of them yours", expect.any(String), undefined],
    ]);
  });

  test("a calm queue needs nobody", () => {
    expect(needsOf(status({ a: { running: 3, complete: 5, ready: 2 } }), manager())).toEqual([]);
  });

  test("each group with failed jobs can be retried, the worst first", () => {
    const needs = needsOf(status({ a: { failed: 1 }, b: { failed: 7, complete: 1 } }), manager());
    expect(needs.map((each) => each.title)).toEqual(["b", "a"]);
    expect(needs[0]?.deed?.run).toEqual({ action: "retry", select: ["@b,state=failed"] });
  });

  test("a hundred failed groups are not a hundred lines", () => {
    const groups = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`g${n}`, { failed: 1 }]));
    const needs = needsOf(status(groups), manager());
    expect(needs.length).toBeLessThan(10);
    expect(needs.at(-1)?.title).toBe("95 more groups");
  });

  test("nobody confirms a death without being asked", () => {
    const [need] = needsOf(status({ a: { lost: 2 } }), manager());
    expect(need?.deed?.run).toEqual({ action: "confirm-dead", select: ["state=lost"] });
    expect(need?.deed?.ask).toContain("2 jobs");
  });

  test("a paused manager can be resumed; a draining one is said to be draining", () => {
    expect(needsOf(status({}, { paused: true }), manager())[0]).toMatchObject({ key: "paused", deed: { run: { manager: "resume" } } });
    expect(needsOf(status({}, { paused: true, draining: true }), manager()).map((each) => each.key)).toEqual(["draining"]);
    expect(needsOf(status({}, { safe_mode: "granting: KeyError" }), manager())[0]).toMatchObject({ key: "bug", deed: { run: { manager: "resume" } } });
  });

  test("blocked and held jobs, a full disk and runners that are away are told", () => {
    const runner = { id: "r", host: "n1", pid: 1, connected: false, seats: 1, running: 0, cores: 1, mem_bytes: 1, disk_bytes: 1 };
    const needs = needsOf(status({ a: { blocked: 1, held: 2 } }), manager({ disk_free_bytes: 1e6, runners: [runner] }));
    expect(needs.map((each) => each.key)).toEqual(["disk", "away", "blocked", "held"]);
  });
});

describe("groups in progress", () => {
  test("those that are done are not among them, and what runs comes first", () => {
    const lines = inProgress(status({ done: { complete: 3 }, waits: { ready: 1, complete: 9 }, runs: { running: 1, ready: 5 } }));
    expect(lines.map((line) => line.name)).toEqual(["runs", "waits"]);
    expect(lines[1]).toMatchObject({ total: 10, ended: 9 });
  });

  test("a rate has a unit in which it can be imagined", () => {
    expect(pace(12)).toBe("12 a second");
    expect(pace(0.1)).toBe("6.0 a minute");
    expect(pace(0.001)).toBe("3.6 an hour");
  });
});

describe("the last hour", () => {
  test("begin when something happened, but are never few", () => {
    const young = filled([minute("2026-03-02T11:59:00Z", { complete: 4 })], NOW, 60);
    expect(begun(young, 15)).toEqual(young.slice(-15));
    const older = filled([minute("2026-03-02T11:30:00Z", { failed: 1 })], NOW, 60);
    expect(begun(older, 15)).toEqual(older.slice(-31));
    expect(begun(filled([], NOW, 60), 15).length).toBe(15);
    expect(begun(filled([], NOW, 5), 15).length).toBe(5);
  });

  test("minutes of which nothing is told are empty, and the last is now", () => {
    const found = filled([minute("2026-03-02T11:59:00Z", { complete: 4 })], NOW, 3);
    expect(found.map((each) => each.complete)).toEqual([0, 4, 0]);
    expect(Date.parse(found[2]?.at ?? "")).toBe(Date.parse("2026-03-02T12:00:00Z"));
    expect(total(found, "complete")).toBe(4);
  });

  test("where nothing started there is no wait", () => {
    expect(waits([minute("", { started: 2, wait_s: 10 }), minute("")])).toEqual([5, null]);
  });

  test("axes end at round numbers that are not below the largest", () => {
    expect([0, 1, 3, 14, 180, 2400].map(ceiling)).toEqual([1, 1, 5, 20, 200, 2500]);
    expect([0.2, 45, 61, 4000].map(roundTime)).toEqual([1, 60, 120, 7200]);
  });

  test("neighbours are added", () => {
    expect(gathered([1, 2, 3, 4, 5], 2)).toEqual([3, 7, 5]);
  });
});
