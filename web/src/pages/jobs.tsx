/** Jobs: up to a million in one table, with filters, sorting, selection and actions. */

import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { type MouseEvent, type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { get } from "../api/client";
import type { JobPage, StatusView } from "../api/types";
import { plural } from "../format";
import { go, useAddress } from "../router";
import { useOnly } from "../session";
import { Command, Empty, Skeleton, Trouble } from "../ui/parts";
import { useSay } from "../ui/toasts";
import { type Verb, useActs } from "./jobs/actions";
import { useAnchor } from "./jobs/anchor";
import { Bulk } from "./jobs/bulk";
import { type Filter, NEWEST, filterOf, filtered, reach, scope, selectors, sortOf } from "./jobs/filter";
import { Filters } from "./jobs/filters";
import { WORDS_MAX, ranges } from "./jobs/ids";
import { useTableKeys } from "./jobs/keys";
import { idsOf, jobsBetween, usePages } from "./jobs/pages";
import { useRows } from "./jobs/scroll";
import { NOTHING, EVERYTHING, RANGE_MAX, type Selection, joined, priorityOf, size, toggled, touchable } from "./jobs/selection";
import { Table } from "./jobs/table";
import "./jobs/jobs.css";

const HEIGHTS = { wide: 34, narrow: 78, below: 640 };
const HEADER = 34;
const FOUND_MAX = 200_000;
/** The most ids or ranges that an address can carry. */
const COUNTED_WORDS = 100;

/** Scroll position of the list when it was left, so that going back shows the same rows. */
const places = new Map<string, number>();

export default function Page(): ReactNode {
  const { query } = useAddress();
  const text = query.toString();
  const [filter, sort] = useMemo(() => {
    const words = new URLSearchParams(text);
    return [filterOf(words), sortOf(words)] as const;
  }, [text]);
  const narrow = useCallback((words: Record<string, string>) => {
    const next = new URLSearchParams(window.location.search);
    for (const [name, value] of Object.entries(words)) {
      if (value) next.set(name, value);
      else next.delete(name);
    }
    go(next.size ? `/jobs?${next}` : "/jobs", { replace: true });
  }, []);
  const word = scope(filter);
  const status = useQuery({
    queryKey: ["status", word],
    queryFn: ({ signal }) => get<StatusView>("/status", { select: word ? [word] : [] }, signal),
    placeholderData: keepPreviousData,
  });
  const groups = useMemo(() => Object.keys(status.data?.groups ?? {}), [status.data]);
  return (
    <div className="jobs-page">
      <Filters filter={filter} sort={sort} counts={status.data?.counts ?? {}} groups={groups} narrow={narrow} />
      {/* Another filter is another list: selection and scroll position are reset. */}
      <List key={JSON.stringify([filter, sort])} filter={filter} sort={sort} setSort={(by) => narrow({ sort: by === NEWEST ? "" : by })} />
    </div>
  );
}

function List({ filter, sort, setSort }: { filter: Filter; sort: string; setSort: (sort: string) => void }): ReactNode {
  const client = useQueryClient();
  const say = useSay();
  const acts = useActs();
  const name = JSON.stringify([filter, sort]);
  const box = useRef<HTMLDivElement>(null);
  const [count, setCount] = useState(0);
  const rows = useRows(box, { count, header: HEADER, heights: HEIGHTS }, places.get(name) ?? 0);
  const { total, error, job } = usePages(filter, sort, rows.first, rows.end);
  useEffect(() => setCount(reach(sort, total ?? 0)), [sort, total]);
  useEffect(() => void places.set(name, rows.place), [name, rows.place]);

  const [selection, setSelection] = useState<Selection>(NOTHING);
  const [current, setCurrent] = useState(-1);
  const [busy, setBusy] = useState(false);
  const anchor = useRef(-1);
  const shift = useCallback((by: number) => {
    setCurrent((at) => (at < 0 ? at : Math.max(0, at + by)));
    if (anchor.current >= 0) anchor.current = Math.max(0, anchor.current + by);
  }, []);
  useAnchor(rows, job, shift);

  const range = useCallback(
    async (index: number) => {
      const from = Math.min(anchor.current, index);
      const to = Math.max(anchor.current, index);
      if (to - from >= RANGE_MAX) {
        say(`At most ${plural(RANGE_MAX, "row")} can be selected at once — the box in the header selects all that match`, { bad: true });
        return;
      }
      try {
        const found = await jobsBetween(client, filter, sort, from, to);
        setSelection((before) => joined(before.all ? NOTHING : before, found));
      } catch (reason) {
        acts.refuse(reason);
      }
    },
    [acts, client, filter, sort, say],
  );
  const toggle = useCallback(
    (index: number, shift: boolean) => {
      setCurrent(index);
      if (shift && anchor.current >= 0) return void range(index);
      const at = job(index);
      anchor.current = index;
      if (at) setSelection((before) => toggled(before, at));
    },
    [job, range],
  );
  const pick = useCallback(
    (index: number, event: MouseEvent) => {
      if ((event.target as HTMLElement).closest("a")) return;
      if (event.shiftKey || event.metaKey || event.ctrlKey) toggle(index, event.shiftKey);
      else {
        setCurrent(index);
        anchor.current = index;
      }
    },
    [toggle],
  );
  const open = useCallback(
    (index: number) => {
      const at = job(index);
      if (at) go(`/jobs/${at.id}`);
    },
    [job],
  );
  const clear = useCallback(() => setSelection(NOTHING), []);
  useTableKeys({ count, page: rows.whole, current, setCurrent, reveal: rows.reveal, toggle, open, clear });

  // Selected jobs of other users are left out.
  const only = useOnly();
  const matching = useMemo(() => {
    const own = only === null ? filter : { ...filter, user: only };
    return selectors(own).length ? selectors(own) : ["all"];
  }, [filter, only]);
  const others = only !== null && (selection.all ? filter.user !== "" && filter.user !== only : touchable(selection.jobs, only).length === 0);
  const plain = useMemo(
    () => (selection.all ? (filter.search || others ? [] : matching) : ranges(touchable(selection.jobs, only))),
    [selection, filter.search, matching, only, others],
  );
  const counts = useQuery({
    queryKey: ["status", "selected", plain.join(" ")],
    queryFn: ({ signal }) => get<StatusView>("/status", { select: plain }, signal),
    enabled: plain.length > 0 && plain.length <= COUNTED_WORDS,
    placeholderData: keepPreviousData,
  });

  /** The selection as selectors of the manager. A text search has no selector, so its jobs are named by id. */
  const words = async (): Promise<string[]> => {
    if (!selection.all) return ranges(touchable(selection.jobs, only));
    if (!filter.search) return matching;
    const ids = await idsOf(only === null ? filter : { ...filter, user: only }, FOUND_MAX);
    const named = ids && ranges(ids);
    if (!named || named.length > WORDS_MAX) throw new Error("The search finds too many jobs to act on — narrow it, or use a filter instead");
    return named;
  };
  const during = async (work: (select: string[]) => Promise<boolean>): Promise<void> => {
    setBusy(true);
    try {
      const select = await words();
      if (select.length && (await work(select))) {
        setSelection(NOTHING);
        // Later pages belong to the manager's cached list; fetching the first page makes it build a new one.
        await get<JobPage>("/jobs", { select: selectors(filter), search: filter.search, sort, limit: 1 });
        await client.invalidateQueries({ queryKey: ["jobs"] });
      }
    } catch (reason) {
      acts.refuse(reason);
    } finally {
      setBusy(false);
    }
  };
  const number = size(selection, total ?? 0);

  return (
    <div className="job-list">
      {error && total === undefined ? <Trouble error={error} /> : null}
      {total === 0 ? <Nothing filter={filter} /> : null}
      <div className="job-frame" hidden={total === 0 || (error !== null && total === undefined)}>
        <Table
          box={box} rows={rows} total={count} job={job} sort={sort} setSort={setSort} selection={selection} current={current}
          choose={(everything) => setSelection(everything ? EVERYTHING : NOTHING)} pick={pick} toggle={toggle} open={open}
        />
        {total === undefined ? <div className="job-first"><Skeleton lines={8} /></div> : null}
      </div>
      {number > 0 ? (
        <Bulk
          number={number} everything={selection.all} total={total ?? 0} busy={busy} priority={priorityOf(selection)}
          counts={plain.length > 0 && plain.length <= COUNTED_WORDS ? counts.data?.counts : undefined} only={only} others={others}
          foreign={selection.all ? 0 : selection.jobs.size - touchable(selection.jobs, only).length}
          check={async (verb, more) => acts.check(verb, await words(), more)}
          act={(verb: Verb, more) => void during((select) => acts.act(verb, select, more))}
          prioritise={(priority) => void during((select) => acts.prioritise(select, priority, priorityOf(selection)))}
          chooseAll={() => setSelection(EVERYTHING)} clear={clear}
        />
      ) : total === 0 ? null : (
        <p className="job-foot faint num" role="status">
          {total === undefined ? "" : `${plural(total, "job")}${filtered(filter) ? (total === 1 ? " matches" : " match") : ""}`}
          {total !== undefined && reach(sort, total) < total ? `; the first ${plural(reach(sort, total), "row")} in this order are listed` : ""}
        </p>
      )}
    </div>
  );
}

function Nothing({ filter }: { filter: Filter }): ReactNode {
  if (filtered(filter))
    return <Empty title="No job matches" icon="search">Leave out a state, or search for less.</Empty>;
  return (
    <Empty title="There are no jobs yet">
      <p>Add one in a terminal, or a file with a command on each line:</p>
      <p><Command text="rota add -- sleep 10" /></p>
      <p><Command text="rota add commands.txt" /></p>
    </Empty>
  );
}
