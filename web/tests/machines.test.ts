import { describe, expect, it, vi } from "vitest";

vi.mock("../src/live", () => ({ live: { hear: () => () => undefined } }));
const { cells } = await import("../src/pages/machines/cores");
const { chosen, mark } = await import("../src/pages/machines/node");
const { band, calm } = await import("../src/pages/machine/history");
type Machine = import("../src/pages/machines/node").Machine;

const machine = (host: string, more: Partial<Machine> = {}): Machine => ({
  host, state: "alive", connected: true, drain: false, usable: true, cores: 8, cores_in_use: 0, mem_bytes: 100, mem_in_use: 0, disk_bytes: 0, gpus: 0,
  jobs: [], runner: "r", pid: 1, available_until: null, limits: {}, properties: {}, hours: "", why: "", closed: false, capacity_cores: 0, ...more,
});

describe("the mark of a machine", () => {
  it("says what is wrong before how busy it is", () => {
    expect(mark(machine("a", { state: "dead", connected: false, drain: true, jobs: [1] })).name).toBe("dead");
    expect(mark(machine("a", { connected: false, drain: true })).name).toBe("no runner");
    expect(mark(machine("a", { drain: true, jobs: [1], cores_in_use: 8 })).name).toBe("draining");
    expect(mark(machine("a", { drain: true })).name).toBe("drained");
    expect(mark(machine("a", { state: "asleep", connected: false })).name).toBe("asleep");
  });
  it("says how busy it is otherwise", () => {
    expect(mark(machine("a")).name).toBe("idle");
    expect(mark(machine("a", { cores_in_use: 0.5 })).name).toBe("busy");
    expect(mark(machine("a", { cores_in_use: 8, jobs: [1] })).name).toBe("full");
  });
});

describe("the wall", () => {
  const all = [machine("n10"), machine("n9", { cores_in_use: 4, jobs: [1] }), machine("g1", { drain: true, properties: { gpu: true, switch: "sw1" } })];
  const names = (found: Machine[]): string[] => found.map((each) => each.host);
  it("is in the order of names, numbers as numbers", () => {
    expect(names(chosen(all, "", "", "name"))).toEqual(["g1", "n9", "n10"]);
  });
  it("shows machines by parts of their name and by properties", () => {
    expect(names(chosen(all, "N1", "", "name"))).toEqual(["n10"]);
    expect(names(chosen(all, "gpu=true switch=SW1", "", "name"))).toEqual(["g1"]);
    expect(names(chosen(all, "gpu=false", "", "name"))).toEqual([]);
  });
  it("shows machines by what they do, and the busiest first", () => {
    expect(names(chosen(all, "", "drained", "name"))).toEqual(["g1"]);
    expect(names(chosen(all, "", "", "cores"))[0]).toBe("n9");
  });
});

describe("cells of cores", () => {
  it("are one a core where there is room", () => expect(cells(8, 3, 60)).toEqual({ each: 1, total: 8, filled: 3 }));
  it("show a core that is used in part", () => expect(cells(8, 0.5, 60).filled).toBe(1));
  it("are several cores each where there are many", () => expect(cells(128, 64, 60)).toEqual({ each: 3, total: 43, filled: 22 }));
  it("are never more than there are", () => expect(cells(4, 9, 60).filled).toBe(4));
});

it("joins times of the same state and puts them in order", () => {
  const found = band([
    { at: "2026-01-02T00:00:00Z", until: null, state: "alive" },
    { at: "2026-01-01T00:00:00Z", until: "2026-01-02T00:00:00Z", state: "alive" },
    { at: "2025-12-31T00:00:00Z", until: "2026-01-01T00:00:00Z", state: "dead" },
  ]);
  expect(found).toEqual([
    { at: "2025-12-31T00:00:00Z", until: "2026-01-01T00:00:00Z", state: "dead" },
    { at: "2026-01-01T00:00:00Z", until: null, state: "alive" },
  ]);
});

it("leaves out pauses of less than a second between times of the same state", () => {
  const at = (s: number): string => new Date(Date.UTC(2026, 0, 1) + s * 1000).toISOString();
  const span = (state: string, from: number, to: number | null) => ({ state, at: at(from), until: to === null ? null : at(to) });
  const spans = [span("busy", 0, 60), span("idle", 60, 60.1), span("busy", 60.1, 90), span("idle", 90, 93), span("busy", 93, 99.5), span("away", 99.5, 100), span("idle", 100, null)];
  expect(calm(spans, Date.UTC(2026, 0, 1) + 200_000)).toEqual([span("busy", 0, 90), span("idle", 90, 93), span("busy", 93, 99.5), span("away", 99.5, 100), span("idle", 100, null)]);
});
