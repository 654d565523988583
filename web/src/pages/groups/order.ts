/** Counts and order of report groups. */

import type { StatusView } from "../../api/types";
import { byName } from "../../format";
import { ACTIVE, ENDED, WAITING, stuck, sum } from "../../states";

export interface Group {
  name: string;
  counts: Record<string, number>;
  /** Its jobs that may be acted on. */
  own: Record<string, number>;
  total: number;
  done: number;
  failed: number;
  active: number;
  waiting: number;
  rate: number | null;
  expectedEnd: string | null;
  /** Why its end is not known, or what it leaves out. */
  endReason: string;
}

const NONE: Record<string, number> = {};

/** `mine`: the same for the jobs that may be acted on, if that is not all of them. */
export function groupsOf(status: StatusView, mine: StatusView = status): Group[] {
  return Object.entries(status.groups).map(([name, counts]) => ({
    name,
    counts,
    own: mine.groups[name] ?? NONE,
    total: Object.values(counts).reduce((all, n) => all + n, 0),
    done: sum(counts, ENDED),
    failed: counts["failed"] ?? 0,
    active: sum(counts, ACTIVE),
    waiting: sum(counts, WAITING),
    rate: status.group_rates[name] ?? null,
    expectedEnd: stuck(counts) ? null : (status.group_expected_end[name] ?? null),
    endReason: status.group_end_reasons?.[name]?.message ?? "",
  }));
}

export const GROUP_ORDERS = {
  activity: "Activity", name: "Name", total: "Jobs", failed: "Failed", progress: "Progress",
} as const;
export type GroupOrder = keyof typeof GROUP_ORDERS;

export const groupOrder = (text: string): GroupOrder => (text in GROUP_ORDERS ? (text as GroupOrder) : "activity");

/** Running groups first, then waiting, then finished ones, so that rows stay in place as numbers change. */
const liveliness = (group: Group): number => (group.active > 0 ? 0 : group.waiting > 0 ? 1 : 2);

export function ordered(groups: readonly Group[], by: GroupOrder, search: string): Group[] {
  const text = search.toLowerCase();
  const found = groups.filter((each) => each.name.toLowerCase().includes(text));
  const compare: Record<GroupOrder, (a: Group, b: Group) => number> = {
    activity: (a, b) => liveliness(a) - liveliness(b) || b.total - a.total,
    name: () => 0,
    total: (a, b) => b.total - a.total,
    failed: (a, b) => b.failed - a.failed,
    progress: (a, b) => a.done / (a.total || 1) - b.done / (b.total || 1),
  };
  return found.sort((a, b) => compare[by](a, b) || byName(a.name, b.name));
}

/** Jobs a second, in a unit that gives a readable number. */
export function pace(rate: number | null): string {
  if (rate === null || rate <= 0) return "";
  const [value, unit] = rate >= 1 ? [rate, "s"] : rate * 60 >= 1 ? [rate * 60, "min"] : [rate * 3600, "h"];
  return `${value >= 10 ? Math.round(value).toLocaleString("en") : value.toFixed(1).replace(/\.0$/, "")}/${unit}`;
}
