import { describe, expect, it, vi } from "vitest";

vi.mock("../src/live", () => ({ live: { hear: () => () => undefined } }));
const { cells } = await import("../src/pages/machines/cores");
const { chosen, mark } = await import("../src/pages/machines/node");
const { band, calm } = await import("../src/pages/machine/history");
const { grouped, keysOf } = await import("../src/pages/machines/grouped");
const { busyShare, partOf } = await import("../src/pages/machines/parts");
const { bands, lanes } = await import("../src/pages/machine/lanes");
type Machine = import("../src/pages/machines/node").Machine;

const machine = (host: string, more: Partial<Machine> = {}): Machine => ({
  host, state: "alive", connected: true, drain: false, usable: true, cores: 8, cores_in_use: 0, mem_bytes: 100, mem_in_use: 0, disk_bytes: 0, gpus: 0,
  jobs: [], runner: "r", pid: 1, available_until: null, limits: {}, properties: {}, hours: "", why: "", closed: false, capacity_cores: 0,
  condition: "automated", usage: "idle", since: null, owner: "", groups: [], manual_user: "", manual_until: null, kept_by: null, kept_until: null, ...more,
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

describe("the condition of a machine", () => {
  it("counts for more than its state", () => {
    expect(mark(machine("a", { condition: "broken", connected: false })).name).toBe("broken");
    expect(mark(machine("a", { condition: "manual", manual_user: "ann" }))).toMatchObject({ name: "manual", about: "Reserved by ann" });
    expect(mark(machine("a", { usage: "installing", jobs: [1] })).name).toBe("installing");
  });
});

describe("the lab", () => {
  const all = [
    machine("b", { groups: ["red", "blue"], properties: { lab: "x" } }), machine("a", { groups: ["red"], condition: "broken", properties: { fast: true } }), machine("c"),
  ];
  const names = (by: string): [string, string[]][] => grouped(all, by).map(([value, its]) => [value, its.map((each) => each.host)]);
  it("has a machine in each of its groups, and those without one last", () => {
    expect(names("group")).toEqual([["blue", ["b"]], ["red", ["b", "a"]], ["", ["c"]]]);
    expect(names("lab")).toEqual([["x", ["b"]], ["", ["a", "c"]]]);
    expect(names("fast")).toEqual([["yes", ["a"]], ["", ["b", "c"]]]);
    expect(names("condition")).toEqual([["automated", ["b", "c"]], ["broken", ["a"]]]);
  });
  it("can be grouped by every property", () => expect(keysOf(all)).toEqual(["group", "condition", "usage", "owner", "state", "fast", "lab"]));
});

describe("the time of machines", () => {
  it("is split as the command line does", () => {
    const part = (condition: string, usage: string, state: string): string => partOf({ condition, usage, state });
    expect(part("automated", "running", "drained")).toBe("busy");
    expect(part("automated", "waiting", "alive")).toBe("installing");
    expect(part("automated", "pending", "alive")).toBe("idle");
    expect(part("automated", "idle", "closed")).toBe("down");
    expect(part("automated", "running", "away")).toBe("down");
    expect(part("automated", "idle", "asleep")).toBe("asleep");
    expect(part("manual", "running", "alive")).toBe("manual");
    expect(part("broken", "idle", "unknown")).toBe("unknown");
    expect(part("removed", "idle", "unknown")).toBe("removed");
  });
  it("counts sleep as capacity, and what is broken not", () => {
    expect(busyShare({ busy: 1, idle: 1, asleep: 2, broken: 9, down: 9 })).toBe(0.25);
    expect(busyShare({ broken: 1 })).toBeNull();
  });
});

describe("the timeline", () => {
  const at = (hour: number): string => `2026-01-01T${String(hour).padStart(2, "0")}:00:00Z`;
  const when = (hour: number): number => Date.parse(at(hour));
  it("joins what stays the same, and begins with the window", () => {
    const history = [
      { at: at(6), until: null, state: "busy", condition: "automated", usage: "running", node_state: "alive" },
      { at: at(4), until: at(6), state: "idle", condition: "automated", usage: "idle", node_state: "alive" },
      { at: at(1), until: at(4), state: "broken", condition: "broken", usage: "idle", node_state: "alive" },
    ];
    expect(bands(history, when(2), when(8), (its) => its.condition ?? "")).toEqual([
      { name: "broken", from: when(2), to: when(4) }, { name: "automated", from: when(4), to: when(8) },
    ]);
  });
  it("puts jobs of the same time into lanes", () => {
    const job = (id: number, from: number, to: number): { id: number; from: number; to: number } => ({ id, from, to });
    const made = lanes([job(1, 0, 4), job(2, 1, 2), job(3, 2, 5), job(4, 4, 6)], 2);
    expect(made.lanes.map((lane) => lane.map((each) => each.id))).toEqual([[1, 4], [2, 3]]);
    expect(made.left).toBe(0);
    expect(lanes([job(1, 0, 4), job(2, 1, 2)], 1).left).toBe(1);
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
