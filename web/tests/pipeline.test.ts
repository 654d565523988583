import { describe, expect, it } from "vitest";
import type { LayersView, PipelineBriefView } from "../src/api/types";
import { NODE, bars, placed } from "../src/pages/graph/place";
import { ORDER, inkOf } from "../src/pages/graph/inks";
import { ELEMENT_STATES, bySums, deeds, inOrder, nameOf, runs, settled } from "../src/pages/pipeline/words";

const sums = { processed: 5, skipped: 4, failed: 3, blocked: 2, terminated: 1, waiting: 7, running: 6 };

describe("a stage", () => {
  it("has every element in one state", () => {
    const counts = bySums(sums);
    expect(Object.keys(counts).sort()).toEqual([...ELEMENT_STATES].sort());
    expect(Object.values(counts).reduce((a, b) => a + b, 0)).toBe(28);
    expect(settled(sums)).toBe(15);
  });
  it("is drawn in few parts where neighbours are alike", () =>
    expect(runs("ooofrra")).toEqual([
      { letter: "o", from: 0, to: 3 }, { letter: "f", from: 3, to: 4 }, { letter: "r", from: 4, to: 6 }, { letter: "a", from: 6, to: 7 },
    ]));
  it("may be without elements", () => expect(runs("")).toEqual([]));
});

describe("a session", () => {
  const names = (state: string, more: Partial<Parameters<typeof deeds>[1]> = {}): string[] =>
    deeds(state, { failed: 0, terminated: 0, ending: null, ...more }).map((each) => each.action);

  it("offers what can be done with it now", () => {
    expect(names("running")).toEqual(["pause", "quit", "terminate"]);
    expect(names("paused")).toEqual(["resume", "quit", "terminate"]);
    expect(names("asking", { failed: 1 })).toEqual(["continue", "retry", "quit", "terminate"]);
    expect(names("running", { ending: "quit" })).toEqual(["pause", "terminate"]);
    expect(names("ended")).toEqual([]);
    expect(names("ended", { failed: 2 })).toEqual(["retry"]);
    expect(names("ended", { terminated: 2 })).toEqual(["retry"]);
  });
  it("asks before it ends anything", () =>
    expect(deeds("running", { failed: 1, terminated: 0, ending: null }).filter((each) => each.question).map((each) => each.action)).toEqual(["quit", "terminate"]));
  it("is called after its file", () => expect(["/a/b/build.yaml", "build.yaml", "/"].map(nameOf)).toEqual(["build.yaml", "build.yaml", "/"]));
  it("comes before those that are over, and newer ones first", () => {
    const of = (session: number, state: string): PipelineBriefView => ({ session, state }) as PipelineBriefView;
    expect(inOrder([of(1, "ended"), of(2, "running"), of(3, "ended"), of(4, "paused")]).map((each) => each.session)).toEqual([4, 2, 3, 1]);
  });
});

describe("a dependency graph", () => {
  const node = (layer: number) => ({ id: layer, name: "", state: "ready", layer, left_s: null, critical: false });
  const graph: Pick<LayersView, "nodes" | "edges"> = {
    nodes: [node(0), node(0), node(1), node(1), node(2)],
    edges: [[0, 3, "ok"], [1, 2, "ok"], [2, 4, "ok"], [3, 4, "ok"]],
  };

  it("has its layers from left to right, and no node above another", () => {
    const { nodes, width, height } = placed(graph);
    const at = new Map(nodes.map((each) => [each.at, each]));
    for (const [parent, child] of graph.edges) expect(at.get(child)?.x).toBeGreaterThan(at.get(parent)?.x ?? Infinity);
    expect(new Set(nodes.map(({ x, y }) => `${x} ${y}`)).size).toBe(5);
    for (const { x, y } of nodes) {
      expect(x).toBeGreaterThanOrEqual(0);
      expect(x + NODE.width).toBeLessThanOrEqual(width);
      expect(y).toBeGreaterThanOrEqual(0);
      expect(y + NODE.height).toBeLessThanOrEqual(height);
    }
  });
  it("does not cross edges that need not cross", () => {
    const y = new Map(placed(graph).nodes.map((each) => [each.at, each.y]));
    expect(Math.sign((y.get(0) ?? 0) - (y.get(1) ?? 0))).toBe(Math.sign((y.get(3) ?? 0) - (y.get(2) ?? 0)));
  });
  it("is drawn in time with hundreds of nodes", () => {
    const nodes = Array.from({ length: 300 }, (_, n) => node(Math.floor(n / 10)));
    const edges = nodes.flatMap((_, n): [number, number, string][] => (n < 10 ? [] : [[n - 10, n, "ok"], [n - 10 - (n % 10), n, "ok"]]));
    expect(placed({ nodes, edges }).nodes).toHaveLength(300);
  });
  it("may be empty", () => expect(placed({ nodes: [], edges: [] }).nodes).toEqual([]));
  it("has the parts of a layer in the same order everywhere", () => {
    const found = bars({ layers: [{ first: 0, last: 1, counts: { waiting: 2, ok: 3, failed: 1, odd: 4, running: 0 } }] }, ORDER);
    expect(found).toEqual([{ first: 0, last: 1, total: 10, parts: [["ok", 3], ["failed", 1], ["waiting", 2], ["odd", 4]] }]);
  });
  it("has a colour for every state", () => expect([...ORDER, "odd"].map(inkOf).every(Boolean)).toBe(true));
});
