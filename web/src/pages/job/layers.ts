/** Places the nodes of a small graph in columns: parents of the job on the left, dependents on the right. */

import type { GraphView } from "../../api/types";

export const NODE = { width: 166, height: 42, between: 12, apart: 48 } as const;

export interface Placed {
  at: number; //: index of the node
  x: number;
  y: number;
}

export interface Layout {
  nodes: Placed[];
  width: number;
  height: number;
}

/** The column of each node. The job itself, which is the first node, is in column 0; parents are negative. */
export function columns({ nodes, edges }: Pick<GraphView, "nodes" | "edges">): number[] {
  const column = nodes.map(() => 0);
  const known = new Set([0]);
  const walk = (step: -1 | 1): void => {
    const met = new Set([0]);
    // Each round moves a node by at least one column; an acyclic graph needs no more rounds than it has nodes.
    for (let round = 0, moved = true; moved && round < nodes.length; round += 1) {
      moved = false;
      for (const [parent, child] of edges) {
        const [near, far] = step === 1 ? [parent, child] : [child, parent];
        if (!met.has(near) || far === 0 || (known.has(far) && !met.has(far))) continue;
        const wanted = (column[near] ?? 0) + step;
        if (met.has(far) && step * (column[far] ?? 0) >= step * wanted) continue;
        column[far] = wanted;
        met.add(far);
        moved = true;
      }
    }
    for (const each of met) known.add(each);
  };
  walk(-1);
  walk(1);
  return column;
}

export function layout(graph: Pick<GraphView, "nodes" | "edges">): Layout {
  const column = columns(graph);
  const first = Math.min(...column);
  const layers = new Map<number, number[]>();
  for (const [at, place] of column.entries()) layers.set(place, [...(layers.get(place) ?? []), at]);
  const rank = new Map<number, number>();
  const order = (place: number): void => {
    const near = (at: number): number => {
      const ranks = graph.edges.flatMap(([a, b]) => (a === at ? [rank.get(b)] : b === at ? [rank.get(a)] : []));
      const found = ranks.filter((each) => each !== undefined);
      return found.length ? found.reduce((sum, each) => sum + each, 0) / found.length : 0;
    };
    const layer = (layers.get(place) ?? []).map((at) => ({ at, near: near(at) })).sort((a, b) => a.near - b.near || a.at - b.at);
    for (const [n, { at }] of layer.entries()) rank.set(at, n - layer.length / 2);
    layers.set(place, layer.map(({ at }) => at));
  };
  // Outwards from the job, so that each column can be ordered by the previous one.
  for (const place of [...layers.keys()].sort((a, b) => Math.abs(a) - Math.abs(b))) order(place);
  const tallest = Math.max(...[...layers.values()].map((each) => each.length));
  const step = NODE.height + NODE.between;
  const height = tallest * step - NODE.between;
  const nodes: Placed[] = [];
  for (const [place, members] of layers) {
    const top = (height - (members.length * step - NODE.between)) / 2;
    for (const [n, at] of members.entries()) nodes.push({ at, x: (place - first) * (NODE.width + NODE.apart), y: top + n * step });
  }
  const wide = Math.max(...column) - first + 1;
  return { nodes, width: wide * (NODE.width + NODE.apart) - NODE.apart, height };
}
