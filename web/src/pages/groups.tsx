/** Groups and their progress, for up to ten thousand groups. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useCallback, useMemo, useRef, useState } from "react";
import { get } from "../api/client";
import type { StatusView } from "../api/types";
import { plural } from "../format";
import { useMine } from "../mine";
import { go, useParam } from "../router";
import { useOnly } from "../session";
import { Icon } from "../ui/icons";
import { Button, Command, Empty, Skeleton, Trouble } from "../ui/parts";
import { ChosenBar, KillDialog, selectorsOf } from "./groups/chosen";
import { GROUP_ORDERS, type Group, groupOrder, groupsOf, ordered } from "./groups/order";
import { GroupRow } from "./groups/row";
import { type Verb, useActs } from "./jobs/actions";
import { addressOf } from "./jobs/filter";
import { useTableKeys } from "./jobs/keys";
import { useRows } from "./jobs/scroll";
import { useNow } from "../now";
import "./jobs/jobs.css";
import "./groups/groups.css";

const HEADERS: [text: string, place: string][] = [
  ["Group", ""], ["Progress", "group-bar"], ["Ended", ""], ["Jobs", ""], ["Rate", "right group-rate"], ["Expected end", "right"],
];
/** Until the counts are known, no action is offered. */
const NO_JOBS = { groups: {} } as StatusView;
const NONE: ReadonlySet<string> = new Set();
const HEIGHTS = { wide: 48, narrow: 112, below: 840 };

export default function Page(): ReactNode {
  const [search, setSearch] = useParam("q");
  const [sort, setSort] = useParam("sort", "activity");
  const by = groupOrder(sort);
  const status = useQuery({
    queryKey: ["status", ""],
    queryFn: ({ signal }) => get<StatusView>("/status", {}, signal),
  });
  const only = useOnly();
  const { data: mine } = useMine();
  const groups = useMemo(() => (status.data ? groupsOf(status.data, only === null ? status.data : (mine ?? NO_JOBS)) : []), [status.data, only, mine]);
  const shown = useMemo(() => ordered(groups, by, search), [groups, by, search]);
  return (
    <div className="groups-page">
      <div className="job-fields">
        <h1>Groups</h1>
        <span className="faint num" role="status">
          {status.data ? (search ? `${shown.length} of ${plural(groups.length, "group")}` : plural(groups.length, "group")) : ""}
        </span>
        <label className="searching">
          <Icon name="search" size={14} />
          <input
            className="field" type="search" placeholder="Filter by name" aria-label="Filter by name" maxLength={200}
            value={search} onChange={(event) => setSearch(event.target.value)}
          />
        </label>
        <label className="sorting">
          <span className="hidden">Sort by</span>
          <select className="field" value={by} onChange={(event) => setSort(event.target.value)}>
            {Object.entries(GROUP_ORDERS).map(([name, text]) => <option key={name} value={name}>{text}</option>)}
          </select>
        </label>
      </div>
      {status.error && !status.data ? <Trouble error={status.error} /> : null}
      {status.isPending ? <Skeleton lines={8} /> : null}
      {status.data && groups.length === 0 ? (
        <Empty title="There are no groups yet" icon="groups">
          <p>A group is a set of jobs that you look at as one. Name it when you add them:</p>
          <p><Command text="rota add -g analysis -- sleep 10" /></p>
          <p><Command text="seq 100 | sed 's/^/echo /' | rota add - -g numbers" /></p>
        </Empty>
      ) : null}
      {groups.length > 0 && shown.length === 0 ? (
        <Empty title="No group has that in its name" icon="search"><Button onClick={() => setSearch("")}>Show all</Button></Empty>
      ) : null}
      {shown.length > 0 ? <List groups={shown} /> : null}
    </div>
  );
}

function List({ groups }: { groups: readonly Group[] }): ReactNode {
  const { act } = useActs();
  const now = useNow();
  const box = useRef<HTMLDivElement>(null);
  const rows = useRows(box, { count: groups.length, header: 34, heights: HEIGHTS }, 0);
  const [current, setCurrent] = useState(-1);
  const [names, setNames] = useState<ReadonlySet<string>>(NONE);
  const [doomed, setDoomed] = useState<readonly Group[]>([]);
  const [busy, setBusy] = useState(false);
  // Actions skip groups that the filter hides.
  const chosen = useMemo(() => groups.filter((each) => names.has(each.name)), [groups, names]);
  const open = useCallback((index: number) => {
    const group = groups[index];
    if (group) go(addressOf({ group: group.name }));
  }, [groups]);
  const pick = useCallback((name: string) => setNames((old) => {
    const next = new Set(old);
    if (!next.delete(name)) next.add(name);
    return next;
  }), []);
  const toggle = useCallback((index: number) => pick(groups[index]?.name ?? ""), [groups, pick]);
  const clear = useCallback(() => setNames(NONE), []);
  useTableKeys({ count: groups.length, page: rows.whole, current, setCurrent, reveal: rows.reveal, toggle, open, clear });

  const run = useCallback(async (verb: Verb, select: string[]) => {
    setBusy(true);
    await act(verb, select);
    setBusy(false);
  }, [act]);
  const retry = useCallback((group: Group) => void run("retry", selectorsOf([group], "failed")), [run]);
  const kill = useCallback((group: Group) => setDoomed([group]), []);
  return (
    <>
      {chosen.length ? <ChosenBar groups={chosen} busy={busy} act={(verb, select) => void run(verb, select)} kill={setDoomed} clear={clear} /> : null}
      <div ref={box} className={`group-list ${rows.narrow ? "cards" : ""}`} tabIndex={0} aria-label="Groups" role="region">
        <div className="group-row group-head">
          <label className="check">
            <input
              type="checkbox" aria-label="Select all groups" checked={chosen.length === groups.length}
              ref={(input) => { if (input) input.indeterminate = chosen.length > 0 && chosen.length < groups.length; }}
              onChange={() => setNames(chosen.length ? NONE : new Set(groups.map((each) => each.name)))}
            />
          </label>
          {HEADERS.map(([text, place]) => <span key={text} aria-hidden="true" className={place}>{text}</span>)}
        </div>
        <div className="job-space" style={{ height: rows.height }}>
          <ul className="job-rows" style={{ transform: `translateY(${rows.top}px)` }}>
            {groups.slice(rows.first, rows.end).map((group, at) => (
              <GroupRow
                key={group.name} group={group} index={rows.first + at} now={now} current={rows.first + at === current}
                selected={names.has(group.name)} busy={busy} pick={pick} retry={retry} kill={kill}
              />
            ))}
          </ul>
        </div>
      </div>
      {doomed.length ? (
        <KillDialog groups={doomed} close={() => setDoomed([])} kill={() => { setDoomed([]); void run("kill", selectorsOf(doomed)); }} />
      ) : null}
    </>
  );
}
