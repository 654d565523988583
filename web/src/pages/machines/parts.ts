/** The parts into which the time of machines is split, as `rota usage` does, with their colours. */

import type { MachineUsageRow } from "../../api/types";

export const PARTS = ["busy", "installing", "idle", "down", "asleep", "manual", "broken", "removed", "unknown"] as const;
export type Part = (typeof PARTS)[number];

/** Colours of `palette.css` and `tokens.css`; `parts.css` has the same. */
export const COLOURS: Record<Part, string> = {
  busy: "chart-4", installing: "chart-5", idle: "chart-6", down: "chart-7", asleep: "chart-8", manual: "chart-3", broken: "bad",
  removed: "chart-rest", unknown: "line",
};

export const ABOUT: Record<Part, string> = {
  busy: "jobs had it", installing: "it was provisioned for a job", idle: "free for jobs", down: "nothing could start: no runner, drained, suspected or closed",
  asleep: "put to sleep", manual: "in use by hand", broken: "to be repaired", removed: "no longer in service",
  unknown: "before it joined, or no manager was running",
};

export interface What {
  condition: string;
  usage: string;
  state: string;
}

export function partOf({ condition, usage, state }: What): Part {
  if (condition === "removed" || condition === "unknown") return condition;
  if (state === "unknown") return "unknown";
  if (condition === "manual" || condition === "broken") return condition;
  if (state === "asleep") return "asleep";
  if (state === "away") return "down";
  if (usage === "waiting" || usage === "installing") return "installing";
  if (usage === "running" || usage === "scheduled") return "busy";
  return state === "alive" ? "idle" : "down";
}

export type Seconds = Partial<Record<Part, number>>;

export function add(into: Seconds, row: MachineUsageRow): void {
  const part = partOf(row);
  into[part] = (into[part] ?? 0) + row.seconds;
}

/** Key → seconds of each part. */
export function byKey(rows: readonly MachineUsageRow[], keys: Iterable<string>): Map<string, Seconds> {
  const found = new Map<string, Seconds>([...keys].map((key) => [key, {}]));
  for (const row of rows) {
    const its = found.get(row.host) ?? {};
    add(its, row);
    found.set(row.host, its);
  }
  return found;
}

/** Start of each window (ms) → seconds of each part, all keys together. */
export function byWindow(rows: readonly MachineUsageRow[], edges: readonly string[]): [at: number, seconds: Seconds][] {
  const found = new Map<number, Seconds>(edges.slice(0, -1).map((edge) => [Date.parse(edge), {}]));
  for (const row of rows) {
    const its = found.get(Date.parse(row.at));
    if (its) add(its, row);
  }
  return [...found];
}

/** Busy time as a share of the time in which jobs could run; null: there was none. */
export function busyShare(seconds: Seconds): number | null {
  const busy = (seconds.busy ?? 0) + (seconds.installing ?? 0);
  const could = busy + (seconds.idle ?? 0) + (seconds.asleep ?? 0);
  return could > 0 ? busy / could : null;
}

export const whole = (seconds: Seconds): number => Object.values(seconds).reduce((sum, its) => sum + its, 0);
