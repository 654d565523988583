/** What the timeline of a machine is made of: bands of its past, and jobs in lanes. */

import type { NodeHistory } from "../../api/types";

export interface Band {
  name: string;
  from: number; //: ms
  to: number; //: ms
}

/** The past between two times as bands, in order; what stays the same is one band. */
export function bands(history: readonly NodeHistory[], from: number, to: number, name: (span: NodeHistory) => string): Band[] {
  const found: Band[] = [];
  const ordered = [...history].sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
  for (const span of ordered) {
    const start = Math.max(from, Date.parse(span.at));
    const end = Math.min(to, span.until === null ? to : Date.parse(span.until));
    if (end <= start) continue;
    const last = found.at(-1);
    const its = name(span);
    if (last && last.name === its && last.to >= start) last.to = end;
    else found.push({ name: its, from: start, to: end });
  }
  return found;
}

/** Puts what overlaps into different lanes, in order of start. `left`: how many had no room in the lanes. */
export function lanes<T extends { from: number; to: number }>(items: readonly T[], most: number): { lanes: T[][]; left: number } {
  const found: T[][] = [];
  let left = 0;
  for (const item of [...items].sort((a, b) => a.from - b.from)) {
    const lane = found.find((its) => (its.at(-1)?.to ?? -Infinity) <= item.from);
    if (lane) lane.push(item);
    else if (found.length < most) found.push([item]);
    else left += 1;
  }
  return { lanes: found, left };
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const STEPS = [MINUTE / 6, MINUTE / 2, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR];

/** Round local times between two times, at most `most` of them. */
export function marks(from: number, to: number, most: number): number[] {
  const step = STEPS.find((each) => (to - from) / each <= most) ?? 24 * HOUR * Math.ceil((to - from) / (24 * HOUR * most));
  const offset = new Date(from).getTimezoneOffset() * 60_000;
  const found = [];
  for (let at = Math.ceil((from - offset) / step) * step + offset; at < to; at += step) found.push(at);
  return found;
}
