/** The jobs in view, a hundred at a time. Requests for rows that left the view are cancelled. */

import { type QueryClient, queryOptions, useQueries, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { get } from "../../api/client";
import type { JobPage, JobView } from "../../api/types";
import { live } from "../../live";
import { type Filter, selectors } from "./filter";

const PAGE = 100;
/** Pages are fetched once scrolling has stopped for this long: a drag over a million jobs fetches none on the way. */
const REST_MS = 90;
/** A slow answer may be older than the last change: this long after it the list is fetched once more. */
const AFTER_MS = 2600;

const pageQuery = (filter: Filter, sort: string, page: number) =>
  queryOptions({
    queryKey: ["jobs", filter, sort, page] as const,
    queryFn: ({ signal }) =>
      get<JobPage>("/jobs", { select: selectors(filter), search: filter.search, sort, limit: PAGE, offset: page * PAGE }, signal),
    gcTime: 60_000,
  });

export interface Listed {
  total: number | undefined;
  error: Error | null;
  /** The job of a row; undefined: not loaded yet; null: removed since the list was made. */
  job: JobAt;
}

export type JobAt = (index: number) => JobView | null | undefined;

export function usePages(filter: Filter, sort: string, first: number, end: number): Listed {
  const span = useRested(Math.floor(first / PAGE), Math.floor(Math.max(first, end - 1) / PAGE));
  const pages = useMemo(() => Array.from({ length: span[1] - span[0] + 1 }, (_, at) => span[0] + at), [span]);
  const client = useQueryClient();
  const answers = useQueries({ queries: pages.map((page) => pageQuery(filter, sort, page)) });
  const newest = answers.reduce<(typeof answers)[number] | undefined>(
    (best, each) => (each.data && (!best || each.dataUpdatedAt > best.dataUpdatedAt) ? each : best),
    undefined,
  );
  // Until the first page of a new filter arrives, nothing is known about it.
  const known = useRef<{ of: string; total: number }>({ of: "", total: 0 });
  const of = JSON.stringify([filter, sort]);
  if (newest?.data) known.current = { of, total: newest.data.total };
  useLast(client, pages.includes(0));
  const job = useCallback<JobAt>(
    (index) => {
      const page = Math.floor(index / PAGE);
      const found = client.getQueryData(pageQuery(filter, sort, page).queryKey);
      return found && (found.jobs[index - page * PAGE] ?? null);
    },
    [client, filter, sort],
  );
  return {
    total: known.current.of === of ? known.current.total : undefined,
    error: answers.find((each) => each.error && !each.data)?.error ?? null,
    job,
  };
}

/** The pages in view, once scrolling stops; adjacent pages at once. */
function useRested(first: number, last: number): [number, number] {
  const [rested, setRested] = useState<[number, number]>([first, last]);
  const near = Math.abs(first - rested[0]) <= 1;
  useEffect(() => {
    if (first === rested[0] && last === rested[1]) return;
    const timer = setTimeout(() => setRested([first, last]), near ? 0 : REST_MS);
    return () => clearTimeout(timer);
  }, [first, last, near, rested]);
  return rested;
}

function useLast(client: QueryClient, top: boolean): void {
  useEffect(() => {
    if (!top) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = live.hear(() => {
      clearTimeout(timer);
      timer = setTimeout(() => void client.invalidateQueries({ queryKey: ["jobs"] }), AFTER_MS);
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [client, top]);
}

/** All jobs from one row to another, even if never in view. */
export async function jobsBetween(client: QueryClient, filter: Filter, sort: string, from: number, to: number): Promise<JobView[]> {
  const found: JobView[] = [];
  for (let page = Math.floor(from / PAGE); page <= Math.floor(to / PAGE); page += 1) {
    const { jobs } = await client.ensureQueryData(pageQuery(filter, sort, page));
    found.push(...jobs.slice(Math.max(0, from - page * PAGE), to - page * PAGE + 1));
  }
  return found;
}

/** The ids of all matching jobs, for a text search, which has no selector. */
export async function idsOf(filter: Filter, most: number): Promise<number[] | null> {
  const ids: number[] = [];
  let cursor = "";
  do {
    const page = await get<JobPage>("/jobs", { select: selectors(filter), search: filter.search, sort: "id", limit: 1000, cursor });
    if (page.total > most) return null;
    for (const each of page.jobs) ids.push(each.id);
    cursor = page.next ?? "";
  } while (cursor);
  return ids;
}
