/** Unfinished groups and their speed. */

import type { StatusView } from "../../api/types";
import { byName } from "../../format";
import { ACTIVE, ENDED, WAITING, sum } from "../../states";

export interface GroupLine {
  name: string;
  counts: Record<string, number>;
  total: number;
  ended: number;
  active: number;
  end: string | undefined;
  endReason: string | undefined;
  rate: number | undefined;
}

/** Unfinished groups: running ones first, then by how near they are to their end. */
export function inProgress(status: StatusView): GroupLine[] {
  return Object.entries(status.groups)
    .filter(([, counts]) => sum(counts, ACTIVE) + sum(counts, WAITING) > 0)
    .map(([name, counts]): GroupLine => ({
      name, counts,
      total: Object.values(counts).reduce((all, n) => all + n, 0),
      ended: sum(counts, ENDED),
      active: sum(counts, ACTIVE),
      end: status.group_expected_end[name],
      endReason: status.group_end_reasons?.[name]?.message,
      rate: status.group_rates[name],
    }))
    .sort((a, b) => b.active - a.active || b.ended / b.total - a.ended / a.total || byName(a.name, b.name));
}

/** "12 a minute": in the unit that gives a number of about one digit. */
export function pace(perSecond: number): string {
  if (perSecond >= 1) return `${perSecond.toFixed(perSecond < 10 ? 1 : 0)} a second`;
  if (perSecond * 60 >= 1) return `${(perSecond * 60).toFixed(perSecond * 60 < 10 ? 1 : 0)} a minute`;
  return `${(perSecond * 3600).toFixed(perSecond * 3600 < 10 ? 1 : 0)} an hour`;
}
