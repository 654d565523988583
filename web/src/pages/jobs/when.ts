/** Times in a table: short, and updated only while in view. */

import type { JobView } from "../../api/types";
import { ACTIVE } from "../../states";

const UNITS: [seconds: number, name: string][] = [[86_400, "d"], [3600, "h"], [60, "m"], [1, "s"]];

/** `3 m ago`: one unit is enough to compare rows; the exact moment is in the title. */
export function since(moment: string | null, now: number): string {
  if (!moment) return "";
  const seconds = (now - Date.parse(moment)) / 1000;
  const far = Math.abs(seconds);
  if (far < 2) return "now";
  const [unit, name] = UNITS.find(([each]) => far >= each) ?? [1, "s"];
  const text = `${Math.floor(far / unit)} ${name}`;
  return seconds < 0 ? `in ${text}` : `${text} ago`;
}

/** How long it ran, or has been running, without suspended time. */
export function lasted(job: JobView, now: number): number | null {
  if (ACTIVE.includes(job.state) && job.started_at) {
    return Math.max(0, (now - Date.parse(job.started_at)) / 1000 - (job.suspended_s ?? 0));
  }
  return job.wall_s;
}
