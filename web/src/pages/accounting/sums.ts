/** Sums of accounting rows per owner: over time, and in total. */

import type { AccountRow } from "../../api/types";
import { midnight } from "./ranges";

export type { AccountRow };

export const SUBJECTS = ["user", "project", "queue"] as const;
export type Subject = (typeof SUBJECTS)[number];
export const MEASURES = ["used_s", "given_s", "asked_s", "cpu_s", "wait_s", "jobs", "attempts", "failed"] as const;
export type Measure = (typeof MEASURES)[number];
/** A sum over `windows`; in `unknown` of them the asked amount is unknown; `unasked` attempts asked for no time. */
export type Sum = Record<Measure, number> & { unasked: number; windows: number; unknown: number };
export type Total = Sum & { key: string; words: string[] };
const HOUR_MS = 3_600_000;
const PARTS = [...MEASURES, "unasked", "windows", "unknown"] as const;

const nothing = (): Sum => ({ used_s: 0, given_s: 0, asked_s: 0, cpu_s: 0, wait_s: 0, jobs: 0, attempts: 0, failed: 0, unasked: 0, windows: 0, unknown: 0 });

export const isSubject = (word: string): word is Subject => SUBJECTS.some((each) => each === word);
export const isMeasure = (word: string): word is Measure => MEASURES.some((each) => each === word);

const SEPARATOR = "\u0000";
export const OTHERS = "all others";

const wordsOf = (row: AccountRow, by: readonly Subject[]): string[] => by.map((subject) => row[subject] || "(none)");

/** One sum per owner, the largest first. */
export function totals(rows: readonly AccountRow[], by: readonly Subject[], measure: Measure): Total[] {
  const found = new Map<string, Total>();
  for (const row of rows) {
    const words = wordsOf(row, by);
    const key = words.join(SEPARATOR);
    let total = found.get(key);
    if (!total) {
      total = { key, words, ...nothing() };
      found.set(key, total);
    }
    for (const each of MEASURES) total[each] += row[each] ?? 0;
    total.unasked += row.unasked ?? 0;
    total.windows += 1;
    if (row.asked_s === null) total.unknown += 1;
  }
  return [...found.values()].sort((a, b) => b[measure] - a[measure] || a.key.localeCompare(b.key));
}

export function whole(all: readonly Total[]): Sum {
  const sum = nothing();
  for (const total of all) for (const each of PARTS) sum[each] += total[each];
  return sum;
}

export interface Stack {
  /** Starts of the windows, in milliseconds, without gaps. */
  windows: number[];
  layers: { name: string; values: number[] }[];
}

/** Every window of the range with the values of the first `most` owners; all others are one layer. */
export function stack(
  rows: readonly AccountRow[], by: readonly Subject[], measure: Measure,
  { from, to, window, most }: { from: number; to: number; window: "hour" | "day"; most: number },
): Stack {
  const windows: number[] = [];
  for (let at = window === "day" ? midnight(from) : Math.floor(from / HOUR_MS) * HOUR_MS; at < to; at = window === "day" ? midnight(at, 1) : at + HOUR_MS) windows.push(at);
  const all = totals(rows, by, measure);
  const places = new Map(all.map((total, place) => [total.key, Math.min(place, most)]));
  const layers = all.slice(0, most).map((total) => ({ name: total.words.join(" · "), values: windows.map(() => 0) }));
  if (all.length > most) layers.push({ name: OTHERS, values: windows.map(() => 0) });
  for (const row of rows) {
    // If midnight is not at a full hour of UTC, the manager's day begins with the hour that contains it.
    const at = Date.parse(row.at) + HOUR_MS - 1;
    const place = windows.findLastIndex((begin) => begin <= at);
    const values = layers[places.get(wordsOf(row, by).join(SEPARATOR)) ?? -1]?.values;
    if (values && place >= 0 && place < values.length) values[place] = (values[place] ?? 0) + (row[measure] ?? 0);
  }
  return { windows, layers };
}

/** Text as a field of CSV. A spreadsheet must not take a name of a user or queue for a formula. */
function field(value: string | number | null | undefined): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(Math.round(value * 1000) / 1000);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csv(rows: readonly AccountRow[], by: readonly Subject[]): string {
  const lines = [["window", ...by, ...MEASURES].join(",")];
  for (const row of rows) lines.push([row.at, ...by.map((subject) => row[subject]), ...MEASURES.map((each) => row[each])].map(field).join(","));
  return `${lines.join("\r\n")}\r\n`;
}
