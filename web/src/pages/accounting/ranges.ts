/** From when to when, and how long a window is. */

export const PRESETS = { "1d": "24 hours", "7d": "7 days", "30d": "30 days", "90d": "90 days", "365d": "1 year" } as const;
export type Preset = keyof typeof PRESETS;
export const isPreset = (word: string): word is Preset => word in PRESETS;

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

export interface Range {
  from: number;
  to: number;
  window: "hour" | "day";
}

/** The range that ends with the window of now. Up to two days are shown by the hour. */
export function rangeOf(preset: Preset, now: number): Range {
  const days = Number.parseInt(preset, 10);
  const window = days <= 2 ? "hour" : "day";
  const step = window === "hour" ? HOUR_MS : DAY_MS;
  const to = (Math.floor(now / step) + 1) * step;
  return { from: to - days * DAY_MS, to, window };
}

/** Days that were picked, both of them included; null: they are none. */
export function picked(first: string, last: string): Range | null {
  const from = Date.parse(`${first}T00:00:00Z`);
  const to = Date.parse(`${last}T00:00:00Z`) + DAY_MS;
  if (!Number.isFinite(from) || !Number.isFinite(to) || to <= from || to - from > 3660 * DAY_MS) return null;
  return { from, to, window: to - from <= 2 * DAY_MS ? "hour" : "day" };
}
