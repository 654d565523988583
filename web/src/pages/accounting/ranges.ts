/** The range of accounting and the length of its windows. */

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

/** The zone of this browser, in which days begin. */
export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** Midnight of the day of a given time, plus some days; a day may have 23 or 25 hours. */
export function midnight(at: number, later = 0): number {
  const day = new Date(at);
  return new Date(day.getFullYear(), day.getMonth(), day.getDate() + later).getTime();
}

/** The local date of a given time, in the format of a date field. */
export function dateOf(at: number): string {
  const day = new Date(at);
  const two = (number: number): string => String(number).padStart(2, "0");
  return `${String(day.getFullYear()).padStart(4, "0")}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}

/** The range that ends with the current window. Up to two days are shown by the hour. */
export function rangeOf(preset: Preset, now: number): Range {
  const days = Number.parseInt(preset, 10);
  const window = days <= 2 ? "hour" : "day";
  if (window === "day") return { from: midnight(now, 1 - days), to: midnight(now, 1), window };
  const to = (Math.floor(now / HOUR_MS) + 1) * HOUR_MS;
  return { from: to - days * DAY_MS, to, window };
}

/** The range of the picked days, both included; null: invalid. */
export function picked(first: string, last: string): Range | null {
  const from = Date.parse(`${first}T00:00:00`); // without a zone: local time
  const to = midnight(Date.parse(`${last}T00:00:00`), 1);
  if (!Number.isFinite(from) || !Number.isFinite(to) || to <= from || to - from > 3660 * DAY_MS) return null;
  return { from, to, window: to - from <= 2 * DAY_MS + HOUR_MS ? "hour" : "day" };
}
