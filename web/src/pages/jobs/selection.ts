/** The selection: some jobs, or all that match the filter, possibly a million. */

import type { JobView } from "../../api/types";

export interface Chosen {
  id: number;
  state: string;
  priority: number;
  user: string;
}

export type Selection = { all: true } | { all: false; jobs: ReadonlyMap<number, Chosen> };

export const NOTHING: Selection = { all: false, jobs: new Map() };
export const EVERYTHING: Selection = { all: true };

/** The longest range that can be selected by hand; for more there is the box in the header. */
export const RANGE_MAX = 5000;

const chosen = ({ id, state, priority, user }: JobView): Chosen => ({ id, state, priority, user });

export const has = (selection: Selection, id: number): boolean => selection.all || selection.jobs.has(id);

export const size = (selection: Selection, total: number): number => (selection.all ? total : selection.jobs.size);

/** Add or remove one job. No selector means "all but one", so removing one of all starts a new selection with it. */
export function toggled(selection: Selection, job: JobView): Selection {
  const jobs = new Map(selection.all ? [] : selection.jobs);
  if (!jobs.delete(job.id)) jobs.set(job.id, chosen(job));
  return { all: false, jobs };
}

export function joined(selection: Selection, more: readonly JobView[]): Selection {
  if (selection.all) return selection;
  const jobs = new Map(selection.jobs);
  for (const each of more) jobs.set(each.id, chosen(each));
  return { all: false, jobs };
}

/** The common priority of the selected jobs, or null. */
export function priorityOf(selection: Selection): number | null {
  if (selection.all) return null;
  const found = new Set([...selection.jobs.values()].map((each) => each.priority));
  return found.size === 1 ? ([...found][0] ?? null) : null;
}

/** The next position of the row cursor. */
export function stepped(key: string, at: number, count: number, page: number): number | null {
  const steps: Record<string, number> = {
    j: at + 1, ArrowDown: at + 1, k: at - 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: count - 1,
  };
  const to = steps[key];
  if (to === undefined || count === 0) return null;
  return Math.min(Math.max(0, to), count - 1);
}

/** The ids of the jobs that may be acted on: all, or those of one user. */
export const touchable = (jobs: ReadonlyMap<number, Chosen>, only: string | null): number[] =>
  [...jobs.values()].filter((each) => only === null || each.user === only).map((each) => each.id);
