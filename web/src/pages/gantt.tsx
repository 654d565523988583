/** The plan as a picture: resources down, time across. */

import { type ReactNode, useCallback, useEffect, useMemo, useState } from "react";
import type { PlanView } from "../api/types";
import { count } from "../format";
import { known, useNow } from "../now";
import { go, useAddress, useParam } from "../router";
import { useTheme } from "../theme";
import { Button, Command, Empty, Skeleton, Trouble } from "../ui/parts";
import { GanttChart } from "./gantt/chart";
import { useGantt } from "./gantt/data";
import { colourOf } from "./gantt/inks";
import { type Bar, type Plan, ended, ghostOf, planOf } from "./gantt/model";
import { BY, type By, legend } from "./gantt/palette";
import { setRange } from "./gantt/range";
import { HOUR, PRESETS, SPAN, type Window, around, windowOf, zoom } from "./gantt/scale";
import { Notes } from "./gantt/notes";
import { Scrubber } from "./gantt/scrubber";
import { JobTable } from "./gantt/table";
import { Waiting } from "./gantt/waiting";
import { WhatIf } from "./gantt/whatif";
import "./gantt/gantt.css";

const LEGEND = 9;
const MOVED_MS = 150;
/** Host states, as in the legend. */
const DID_SHOWN: readonly (readonly [name: string, states: readonly string[]])[] = [
  ["drained", ["drained", "draining"]], ["away", ["away", "suspected"]], ["asleep", ["asleep"]], ["closed", ["closed"]],
  ["manual", ["manual"]], ["broken", ["broken"]], ["removed", ["removed"]],
  ["unknown", ["unseen", "unknown", "gone"]],
];
const NOBODY: ReadonlySet<number> = new Set();

function Legend({ plan, by, filter, setFilter }: { plan: Plan; by: By; filter: string; setFilter: (text: string) => void }): ReactNode {
  const theme = useTheme();
  const values = useMemo(() => legend(plan.bars, by), [plan, by]);
  const kinds = useMemo(() => new Set(plan.bars.map((bar) => bar.kind)), [plan]);
  const failed = useMemo(() => plan.bars.some((bar) => bar.kind === "ended" && bar.job.state !== "complete"), [plan]);
  const did = useMemo(() => new Set(plan.rows.flatMap((row) => row.states.map((each) => each.job.state))), [plan]);
  return (
    <ul className="gantt-legend" aria-label={`Colours by ${by}`}>
      {values.slice(0, LEGEND).map(([value, n]) => (
        <li key={value}>
          <button type="button" aria-pressed={filter === value} onClick={() => setFilter(filter === value ? "" : value)}>
            <i style={{ background: colourOf(value, by, theme) }} />
            <span className="clip">{value || "none"}</span>
            <small className="faint num">{count(n)}</small>
          </button>
        </li>
      ))}
      {values.length > LEGEND ? <li className="faint">and {values.length - LEGEND} more</li> : null}
      <li className="kinds">
        {kinds.has("ended") ? <span><i className="ended" />ended</span> : null}
        {failed ? <span><i className="failed" />failed</span> : null}
        {plan.rows.some((row) => row.merged.length) ? <span><i className="merged" />many jobs</span> : null}
        {DID_SHOWN.map(([name, states]) => states.some((state) => did.has(state)) ? <span key={name}><i className={name} />{name === "away" ? "down" : name === "unknown" ? "not known" : name}</span> : null)}
        {plan.bars.some((bar) => bar.job.gang) ? <span><i className="gang" />gang</span> : null}
        <span><i className="running" />running</span>
        <span><i className="planned" />planned</span>
        <span><i className="reserved" />reserved</span>
        <span><i className="besteffort" />besteffort</span>
        <span><i className="down" />not to be used</span>
      </li>
    </ul>
  );
}

export default function Page(): ReactNode {
  const { query } = useAddress();
  const [by, setBy] = useParam("by", "group");
  const [filter, setFilter] = useParam("filter");
  const [busy, setBusy] = useParam("hosts", "all");
  const [asked, setAsked] = useState<PlanView | null>(null);
  const span = PRESETS.find(([name]) => name === query.get("span"))?.[0] ?? SPAN;
  const fixed = useMemo(() => windowOf(query), [query]);
  const ms = PRESETS.find(([name]) => name === span)?.[1] ?? 6 * HOUR;
  const here = useNow(Math.min(15_000, Math.max(1000, (fixed ? fixed.to - fixed.from : ms) / 1500)));

  const [skew, setSkew] = useState(0);
  const settled = fixed ?? around(here + skew, ms);
  const [moving, setMoving] = useState<Window | null>(null);
  const view = moving ?? settled;
  const { data, error } = useGantt(settled);
  // Nothing is fetched while the window is being moved: the loaded data moves with it.
  useEffect(() => {
    if (!moving) return;
    const timer = setTimeout(() => {
      setRange(moving, "");
      setMoving(null);
    }, MOVED_MS);
    return () => clearTimeout(timer);
  }, [moving]);
  useEffect(() => {
    if (data && Math.abs(data.skew - skew) > 2000) setSkew(data.skew);
  }, [data]);
  const clock = useCallback(() => known() + skew, [skew]);

  const ghost = useMemo(() => ghostOf(asked), [asked]);
  const plan = useMemo((): Plan | null => {
    if (!data) return null;
    const whole = planOf(data.view, ghost);
    return busy === "all" ? whole : { ...whole, rows: whole.rows.filter((row) => row.pieces.length + row.merged.length > 0) };
  }, [data, ghost, busy]);
  const ends = useMemo(() => (plan && ghost ? ended(plan, ghost) : []), [plan, ghost]);
  const moved = useMemo(() => (asked ? new Set([...asked.moves, ...ends]) : NOBODY), [asked, ends]);
  const queues = useMemo(() => [...new Set(plan?.bars.map((bar) => bar.job.queue) ?? [])].filter(Boolean), [plan]);

  const open = useCallback((bar: Bar) => {
    if (bar.kind === "merged") setRange({ from: bar.start - (bar.end - bar.start), to: bar.end + (bar.end - bar.start) }, "");
    else go(`/jobs/${bar.job.id}`);
  }, []);
  const onView = useCallback((next: Window) => setRange(next, ""), []);
  const show = useCallback((found: PlanView) => {
    if (!found.start) return;
    const start = Date.parse(found.start);
    const end = found.end ? Date.parse(found.end) : start + HOUR;
    const from = Math.min(clock(), start);
    const room = Math.max(end - from, HOUR / 2) * 0.15;
    setRange({ from: from - room, to: end + room }, "");
  }, [clock]);

  const colours: By = (BY as readonly string[]).includes(by) ? (by as By) : "group";
  if (error && !data) return <Trouble error={error} />;
  if (!data || !plan) return <Skeleton lines={8} />;
  // The present keeps its position on the screen while it is in view.
  const middle = view.from < clock() && clock() < view.to ? clock() : (view.from + view.to) / 2;
  return (
    <div className="gantt">
      <header className="gantt-head">
        <h1>Gantt</h1>
        <div className="segments" role="group" aria-label="Range">
          {PRESETS.map(([name]) => (
            <button key={name} type="button" aria-pressed={!fixed && name === span} onClick={() => setRange(null, name)}>{name}</button>
          ))}
          {fixed ? <span className="custom" title="Moved or zoomed; it does not follow the time">custom</span> : null}
        </div>
        <div className="segments" role="group" aria-label="Zoom">
          <button type="button" aria-label="Zoom out" onClick={() => setRange(zoom(view, 2, middle), "")}>−</button>
          <button type="button" aria-label="Zoom in" onClick={() => setRange(zoom(view, 1 / 2, middle), "")}>+</button>
        </div>
        {fixed ? <Button small icon="ready" onClick={() => setRange(null, span)}>Now</Button> : null}
        <label className="gantt-by">
          Colour by{" "}
          <select value={colours} onChange={(event) => setBy(event.target.value)}>
            {BY.map((each) => <option key={each}>{each}</option>)}
          </select>
        </label>
        <input
          type="search" className="gantt-filter" placeholder="Filter: user, group, name…" aria-label="Dim all jobs without this text"
          value={filter} maxLength={100} onChange={(event) => setFilter(event.target.value)}
        />
        <label className="gantt-check">
          <input type="checkbox" checked={busy !== "all"} onChange={(event) => setBusy(event.target.checked ? "busy" : "all")} />
          Only hosts with jobs
        </label>
      </header>
      <div className="gantt-main">
        <div className="gantt-left">
          <Legend plan={plan} by={colours} filter={filter} setFilter={setFilter} />
          {plan.rows.length === 0 ? (
            <Empty title={busy === "all" ? "There are no hosts yet" : "No host has jobs in this range"} icon="machines">
              {busy === "all" ? "They appear when a runner connects, or when they are added:" : "Look at all hosts, or at another time."}
              {busy === "all" ? <p><Command text="rota resource add --hosts n[1-4] --cores 8" /></p> : null}
            </Empty>
          ) : (
            <GanttChart
              plan={plan} view={view} by={colours} filter={filter} moved={moved} clock={clock} tick={here} onView={onView} onOpen={open}
            />
          )}
          <Scrubber view={view} now={clock()} move={setMoving} />
          <Notes plan={plan} found={data.view} view={view} />
          <JobTable bars={plan.bars} view={view} filter={filter} />
        </div>
        <aside className="gantt-side">
          <WhatIf plan={asked} ends={ends} onPlan={setAsked} onShow={show} now={clock()} queues={queues} />
          <Waiting view={data.view} />
        </aside>
      </div>
    </div>
  );
}
