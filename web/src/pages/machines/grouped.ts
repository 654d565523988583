/** The machines of a lab, grouped by any property. */

import { byName } from "../../format";
import { type Machine, mark } from "./node";

/** What every machine has, besides its properties. */
export const KEYS = ["group", "condition", "usage", "owner", "state"] as const;

/** All that machines can be grouped by. */
export function keysOf(nodes: readonly Machine[]): string[] {
  const names = new Set(nodes.flatMap((node) => Object.keys(node.properties)));
  return [...KEYS, ...[...names].filter((name) => !(KEYS as readonly string[]).includes(name)).sort(byName)];
}

export function valuesOf(node: Machine, by: string): string[] {
  if (by === "group") return node.groups.length ? node.groups : [""];
  if (by === "condition") return [node.condition];
  if (by === "usage") return [node.usage];
  if (by === "owner") return [node.owner];
  if (by === "state") return [mark(node).name];
  const value = node.properties[by];
  return [value === undefined ? "" : value === true ? "yes" : value === false ? "no" : String(value)];
}

/** Value → its machines, in order; those without the property last. */
export function grouped(nodes: readonly Machine[], by: string): [value: string, nodes: Machine[]][] {
  const found = new Map<string, Machine[]>();
  for (const node of nodes)
    for (const value of valuesOf(node, by)) {
      const same = found.get(value);
      if (same) same.push(node);
      else found.set(value, [node]);
    }
  return [...found].sort(([a], [b]) => (a === "" ? 1 : 0) - (b === "" ? 1 : 0) || byName(a, b));
}
