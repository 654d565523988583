/** What jobs asked for or were given, and what they used, as points of a chart with logarithmic axes. */

import type { LearningPoint } from "../../api/types";

export type Point = LearningPoint;
export type Asked = "mem" | "time";
/** What the use is compared with: what Rota allocated, or what the user asked for. */
export const AGAINST = ["given", "asked"] as const;
export type Against = (typeof AGAINST)[number];
export const isAgainst = (word: string): word is Against => AGAINST.some((each) => each === word);

/** Zero has no logarithm: smaller values are shown as this. */
const LEAST: Record<Asked, number> = { mem: 1 << 20, time: 0.01 };

export interface Dot {
  x: number;
  y: number;
  point: Point;
}

/** Given or asked to the right, used upwards. Amounts that were not asked for or not measured have no point. */
export function dots(points: readonly Point[], what: Asked, against: Against): Dot[] {
  const found: Dot[] = [];
  for (const point of points) {
    const used = what === "mem" ? point.used_mem : point.used_time_s;
    const of = { given: { mem: point.given_mem, time: point.given_time_s }, asked: { mem: point.asked_mem, time: point.asked_time_s } }[against][what];
    if (of !== null && of !== undefined && of > 0 && (used > 0 || what === "time")) found.push({ x: Math.max(of, LEAST[what]), y: Math.max(used, LEAST[what]), point });
  }
  return found;
}

/** The powers of the base around all values: both axes share them, so that equal values lie on the diagonal. */
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

/** Round times, since no power of ten is a minute or an hour. */
export const TIMES: readonly number[] = [0.01, 0.1, 1, 10, 60, 600, 3600, 36_000, 86_400, 864_000, 8_640_000, 86_400_000];

/** The round times around all values. */
export function timeRange(all: readonly Dot[]): [number, number] {
  const values = all.flatMap(({ x, y }) => [x, y]);
  const low = TIMES.findLast((each) => values.every((value) => each <= value)) ?? 0.01;
  const high = TIMES.find((each) => each > low && values.every((value) => value <= each)) ?? 86_400_000;
  return [low, high];
}

/** The used share of all that was given, or asked for; null: unknown. */
export function used(all: readonly Dot[]): number | null {
  const whole = all.reduce((sum, dot) => sum + dot.x, 0);
  return whole > 0 ? all.reduce((sum, dot) => sum + dot.y, 0) / whole : null;
}
