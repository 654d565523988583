/** What jobs asked for and used, as points of a chart with logarithmic axes. */

import type { LearningPoint } from "../../api/types";

export type Point = LearningPoint;
export type Asked = "mem" | "time";

/** Nothing has no logarithm: what is less than this is shown as this. */
const LEAST: Record<Asked, number> = { mem: 1 << 20, time: 0.01 };

export interface Dot {
  x: number;
  y: number;
  point: Point;
}

/** Asked to the right, used upwards. What was not asked for, or not measured, has no place. */
export function dots(points: readonly Point[], what: Asked): Dot[] {
  const found: Dot[] = [];
  for (const point of points) {
    const [asked, used] = what === "mem" ? [point.asked_mem, point.used_mem] : [point.asked_time_s, point.used_time_s];
    if (asked > 0 && (used > 0 || what === "time")) found.push({ x: Math.max(asked, LEAST[what]), y: Math.max(used, LEAST[what]), point });
  }
  return found;
}

/** The powers of the base around all values, so that both axes are the same and the diagonal is one. */
export function range(all: readonly Dot[], base: number): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const { x, y } of all) {
    low = Math.min(low, x, y);
    high = Math.max(high, x, y);
  }
  if (!Number.isFinite(low)) return [1, base];
  const from = base ** Math.floor(Math.log(low) / Math.log(base) + 1e-9);
  const to = base ** Math.ceil(Math.log(high) / Math.log(base) - 1e-9);
  return [from, to > from ? to : from * base];
}

/** Round times, as people think of them; no power of ten is an hour. */
export const TIMES: readonly number[] = [0.01, 0.1, 1, 10, 60, 600, 3600, 36_000, 86_400, 864_000, 8_640_000, 86_400_000];

/** The round times around all values. */
export function timeRange(all: readonly Dot[]): [number, number] {
  const values = all.flatMap(({ x, y }) => [x, y]);
  const low = TIMES.findLast((each) => values.every((value) => each <= value)) ?? 0.01;
  const high = TIMES.find((each) => each > low && values.every((value) => value <= each)) ?? 86_400_000;
  return [low, high];
}

/** Of all that was asked for, how much was used; null: nothing is known. */
export function used(all: readonly Dot[]): number | null {
  const asked = all.reduce((sum, dot) => sum + dot.x, 0);
  return asked > 0 ? all.reduce((sum, dot) => sum + dot.y, 0) / asked : null;
}
