/** Learned amounts as text. */

import { duration, size } from "../../format";

export type What = "mem" | "time" | "disk";
/** An approximate time for an axis: two digits and one unit. */
export function brief(seconds: number): string {
  const [value, unit] = seconds < 1 ? [seconds * 1000, "ms"] : seconds < 60 ? [seconds, "s"] : seconds < 3600 ? [seconds / 60, "m"] : seconds < 86_400 ? [seconds / 3600, "h"] : [seconds / 86_400, "d"];
  return `${value < 10 ? Math.round(value * 10) / 10 : Math.round(value)} ${unit}`;
}

export const shown = (what: What, value: number): string => (what === "time" ? duration(value) : size(value));
