/** The first page: the present, the last hour, and everything that needs a person. */

import { type ReactNode, useMemo } from "react";
import type { StatusView } from "../api/types";
import { ago, count, duration, moment, percent } from "../format";
import { useMine } from "../mine";
import { useNow } from "../now";
import { useOnly } from "../session";
import { ENDED, sum } from "../states";
import { Progress, Skeleton, Trouble } from "../ui/parts";
import { needsOf } from "./overview/attention";
import { useLoads, useManager, useMinutes, useStatus } from "./overview/data";
import { Groups } from "./overview/groups";
import { Throughput, WaitTimes } from "./overview/history";
import { Machines } from "./overview/machines";
import { Needs } from "./overview/needs";
import { Numbers } from "./overview/numbers";
import { pace } from "./overview/progress";
import { Welcome } from "./overview/welcome";
import "./overview/overview.css";

/** Until the counts are known, no action is offered. */
const NO_JOBS = { counts: {}, groups: {} } as StatusView;

function Whole({ status, now }: { status: StatusView; now: number }): ReactNode {
  const all = Object.values(status.counts).reduce((total, n) => total + n, 0);
  const ended = sum(status.counts, ENDED);
  const end = status.expected_end;
  const left = all - ended;
  return (
    <section className="ov-whole" aria-label="All jobs">
      <div>
        <p><b className="num">{percent(ended, all)}</b> of {count(all)} jobs done</p>
        <p className="muted">
          {left === 0 ? "Everything is done." : end
            ? <>Expected to end <b>{ago(end, now)}</b>, about {moment(end)}</>
            : <>{count(left)} to go{status.end_reason ? `; the end is not known: ${status.end_reason.message}` : ""}</>}
          {status.rate ? `; ${pace(status.rate)} lately` : ""}
        </p>
      </div>
      <Progress counts={status.counts} label="All jobs" />
    </section>
  );
}

export default function Page(): ReactNode {
  const now = useNow();
  const { data: status, error } = useStatus();
  const { data: manager } = useManager();
  const { data: loads } = useLoads();
  const minutes = useMinutes(now);
  const only = useOnly();
  const { data: mine } = useMine();
  const needs = useMemo(
    () => (status ? needsOf(status, manager, only === null ? null : (mine ?? NO_JOBS)) : []),
    [status, manager, only, mine],
  );
  if (error && !status) return <Trouble error={error} />;
  if (!status) return <Skeleton lines={8} />;
  if (Object.values(status.counts).every((n) => n === 0)) return <Welcome manager={manager} />;
  return (
    <div className="overview">
      <header className="ov-head">
        <h1>Overview</h1>
        {manager ? <p className="faint">Up for {duration((now - Date.parse(manager.started_at)) / 1000)}, version {manager.version}</p> : null}
      </header>
      <Whole status={status} now={now} />
      <Numbers status={status} minutes={minutes} />
      <div className="ov-columns">
        <div className="ov-wide">
          <div className="ov-charts">
            <Throughput minutes={minutes} />
            <WaitTimes minutes={minutes} />
          </div>
          <Groups status={status} now={now} />
        </div>
        <div className="ov-narrow">
          <Needs needs={needs} />
          <Machines status={status} manager={manager} loads={loads} />
        </div>
      </div>
    </div>
  );
}
