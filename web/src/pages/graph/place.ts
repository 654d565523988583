/** Where the nodes of a layered graph are: layers from left to right, each ordered by what its nodes depend on. */

import type { LayersView } from "../../api/types";

export const NODE = { width: 172, height: 42, between: 12, apart: 52 } as const;

export interface Placed {
  at: number; //: index of the node
  x: number;
  y: number;
}

/** Forwards and back again, so often. */
const SWEEPS = 4;

export function placed({ nodes, edges }: Pick<LayersView, "nodes" | "edges">): { nodes: Placed[]; width: number; height: number } {
  const layers: number[][] = [];
  for (const [at, node] of nodes.entries()) (layers[node.layer] ??= []).push(at);
  const above: number[][] = nodes.map(() => []);
  const below: number[][] = nodes.map(() => []);
  for (const [parent, child] of edges) {
    above[child]?.push(parent);
    below[parent]?.push(child);
  }
  const rank = nodes.map(() => 0);
  const order = (layer: number[], near: readonly number[][]): void => {
    const place = new Map(layer.map((at) => {
      const others = near[at] ?? [];
      return [at, others.length ? others.reduce((sum, each) => sum + (rank[each] ?? 0), 0) / others.length : (rank[at] ?? 0)];
    }));
    layer.sort((a, b) => (place.get(a) ?? 0) - (place.get(b) ?? 0) || a - b);
    settle(layer);
  };
  const settle = (layer: readonly number[]): void => {
    for (const [n, at] of layer.entries()) rank[at] = n - (layer.length - 1) / 2;
  };
  for (const layer of layers) settle(layer);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forth = sweep % 2 === 0;
    for (const layer of forth ? layers : [...layers].reverse()) order(layer, forth ? above : below);
  }
  const step = NODE.height + NODE.between;
  const tallest = Math.max(1, ...layers.map((layer) => layer.length));
  const height = tallest * step - NODE.between;
  const found = layers.flatMap((layer, x) =>
    layer.map((at, n) => ({ at, x: x * (NODE.width + NODE.apart), y: (height - (layer.length * step - NODE.between)) / 2 + n * step })));
  return { nodes: found, width: Math.max(1, layers.length) * (NODE.width + NODE.apart) - NODE.apart, height };
}

export interface Bar {
  first: number;
  last: number;
  total: number;
  parts: [state: string, n: number][];
}

/** Layers as bars, whose parts are in a fixed order. */
export function bars({ layers }: Pick<LayersView, "layers">, order: readonly string[]): Bar[] {
  const rank = (state: string): number => (order.includes(state) ? order.indexOf(state) : order.length);
  return layers.map(({ first, last, counts }) => {
    const parts = Object.entries(counts).filter(([, n]) => n > 0).sort(([a], [b]) => rank(a) - rank(b));
    return { first, last, total: parts.reduce((sum, [, n]) => sum + n, 0), parts };
  });
}
