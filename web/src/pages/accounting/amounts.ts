/** The measures of accounting, as labels and numbers. */

import { count } from "../../format";
import type { Measure, Sum } from "./sums";

export const NAMES: Record<Measure, { name: string; about: string }> = {
  used_s: { name: "Core-hours used", about: "cores that jobs held, for as long as they ran" },
  given_s: { name: "Core-hours given", about: "cores that jobs held, for the walltime or the expected time with which they were started" },
  asked_s: { name: "Core-hours asked", about: "cores that jobs held, for the walltime or the time that somebody asked for" },
  cpu_s: { name: "CPU hours", about: "what the processors really worked for jobs" },
  wait_s: { name: "Hours waited", about: "from when jobs could start until they did" },
  jobs: { name: "Jobs", about: "that ended" },
  attempts: { name: "Attempts", about: "executions of jobs" },
  failed: { name: "Failed", about: "attempts that failed" },
};

const isTime = (measure: Measure): boolean => measure.endsWith("_s");

export function hours(seconds: number): string {
  const value = seconds / 3600;
  if (value === 0) return "0";
  if (value < 0.01) return "< 0.01";
  return value >= 100 ? count(Math.round(value)) : String(Math.round(value * 100) / 100);
}

/** The values of a chart, in hours, so that its axis has round numbers. */
export const plotted = (measure: Measure, value: number): number => (isTime(measure) ? value / 3600 : value);

export const amount = (measure: Measure, value: number): string => (isTime(measure) ? `${hours(value)} h` : count(value));

/** A sum in a table. The asked amount may be unknown for some of it. */
export function told(measure: Measure, sum: Sum): string {
  const text = isTime(measure) ? hours(sum[measure]) : count(sum[measure]);
  if (measure !== "asked_s" || sum.unknown === 0) return text;
  return sum.unknown === sum.windows ? "not known" : `≥ ${text}`;
}

/** A note on what a sum of asked amounts leaves out; empty: nothing. */
export function leftOut(sum: Sum): string {
  const parts = [];
  if (sum.unasked) parts.push(`${count(sum.unasked)} ${sum.unasked === 1 ? "attempt" : "attempts"} asked for no time`);
  if (sum.unknown) parts.push("an earlier version did not write down what was asked for");
  return parts.join("; ");
}
