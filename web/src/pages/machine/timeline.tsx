/** The timeline of a machine: its condition and usage as bands, and its jobs as bars. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import { get } from "../../api/client";
import type { JobPage, JobView, NodeHistory } from "../../api/types";
import "../../charts/palette.css";
import { brief, duration, moment } from "../../format";
import { Link, useParam } from "../../router";
import { tone } from "../../states";
import { Segments } from "../../ui/form";
import { Card } from "../../ui/parts";
import { type Band, bands, lanes, marks } from "./lanes";
import "./timeline.css";

const HOUR = 3_600_000;
const SPANS: Record<string, number> = { "6h": 6 * HOUR, "1d": 24 * HOUR, "7d": 7 * 24 * HOUR };
const NAMES = [["6h", "6 hours"], ["1d", "24 hours"], ["7d", "7 days"]] as const;
const MOST_JOBS = 300;
const MOST_LANES = 8;
const LABELS = 7;
const LEAST = 60_000;

/** What a machine was used for; a node that is not there counts for more. */
const usage = (span: NodeHistory): string => {
  const { node_state: state = "alive", usage: its = "" } = span;
  const free = its === "idle" || its === "pending" || its === "";
  return state === "alive" || (!free && state !== "away" && state !== "unknown") ? its || span.state : state;
};

function Row({ name, made, from, to }: { name: string; made: Band[]; from: number; to: number }): ReactNode {
  const part = (ms: number): string => `${(100 * ms) / Math.max(1, to - from)}%`;
  const totals = new Map<string, number>();
  for (const band of made) totals.set(band.name, (totals.get(band.name) ?? 0) + band.to - band.from);
  const told = [...totals].map(([word, ms]) => `${word} ${duration(ms / 1000)}`).join(", ");
  return (
    <>
      <span className="muted">{name}</span>
      <div className="timeline-band" role="img" aria-label={`${name}: ${told || "nothing is known"}`}>
        {made.map((band) => (
          <i key={band.from} className={`is-${band.name}`} style={{ left: part(band.from - from), width: part(band.to - band.from) }}
            title={`${band.name}: ${moment(new Date(band.from).toISOString())} to ${band.to >= to ? "now" : moment(new Date(band.to).toISOString())} (${duration((band.to - band.from) / 1000)})`} />
        ))}
      </div>
    </>
  );
}

interface Shown {
  job: JobView;
  from: number;
  to: number;
}

function JobBars({ host, from, to }: { host: string; from: number; to: number }): ReactNode {
  const { data } = useQuery({
    queryKey: ["jobs", "timeline", host],
    queryFn: ({ signal }) => get<JobPage>("/jobs", { select: [`host=${host}`], sort: "-started", limit: MOST_JOBS }, signal),
    placeholderData: keepPreviousData,
  });
  const shown = useMemo(() => (data?.jobs ?? [])
    .filter((job) => job.started_at !== null)
    .map((job): Shown => ({ job, from: Math.max(from, Date.parse(job.started_at ?? "")), to: job.ended_at ? Date.parse(job.ended_at) : to }))
    .filter((each) => each.to > from && each.from < to), [data, from, to]);
  const { lanes: made, left } = useMemo(() => lanes(shown, MOST_LANES), [shown]);
  const part = (ms: number): string => `${(100 * ms) / Math.max(1, to - from)}%`;
  return (
    <>
      <span className="muted">Jobs</span>
      <div className="timeline-jobs">
        {made.length === 0 ? <p className="muted">{data ? "None ran in this time." : ""}</p> : null}
        {made.map((lane, at) => (
          <div key={at} className="timeline-lane">
            {lane.map(({ job, from: start, to: end }) => (
              <Link key={job.id} to={`/jobs/${job.id}`} className={`fill-${tone(job.state)} ${job.gang ? "ganged" : ""}`} style={{ left: part(start - from), width: part(end - start) }}
                title={`#${job.id} ${job.name || brief(job.cmd)}: ${job.state}, ${moment(job.started_at)} to ${job.ended_at ? moment(job.ended_at) : "now"}${job.gang ? `; gang ${job.gang}` : ""}`}>
                <span className="hidden">Job {job.id}, {job.state}</span>
              </Link>
            ))}
          </div>
        ))}
        {left ? <p className="muted">{left} more ran at the same time.</p> : null}
        {data && data.total > MOST_JOBS ? <p className="muted">The last {MOST_JOBS} of {data.total} jobs.</p> : null}
      </div>
    </>
  );
}

const clock = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hour12: false });
const exact = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const day = new Intl.DateTimeFormat("en", { month: "short", day: "numeric" });

export function Timeline({ host, history, now }: { host: string; history: NodeHistory[]; now: number }): ReactNode {
  const [word, setWord] = useParam("span", "1d");
  const span = SPANS[word] ?? 24 * HOUR;
  // A machine that joined a moment ago has no past to leave room for.
  const known = Math.min(...history.map((each) => Date.parse(each.at)));
  const from = Math.min(now - LEAST, Math.max(now - span, Number.isFinite(known) ? known : 0));
  const ticks = marks(from, now, LABELS).filter((at) => now - at > (now - from) / 14);
  const short = now - from < LABELS * 60_000;
  const conditions = bands(history, from, now, (its) => its.condition || "automated");
  const usages = bands(history, from, now, usage);
  const names = [...new Set([...conditions, ...usages].map((each) => each.name))];
  return (
    <Card title="Timeline" aside={<Segments label="Time" value={word in SPANS ? word : "1d"} change={setWord} options={NAMES} />}>
      <div className="timeline">
        <Row name="Condition" made={conditions} from={from} to={now} />
        <Row name="Usage" made={usages} from={from} to={now} />
        <JobBars host={host} from={from} to={now} />
        <span />
        <div className="timeline-axis num" aria-hidden="true">
          {ticks.map((at) => <span key={at} style={{ left: `${(100 * (at - from)) / (now - from)}%` }}>{new Date(at).getHours() === 0 && new Date(at).getMinutes() === 0 ? day.format(at) : (short ? exact : clock).format(at)}</span>)}
        </div>
      </div>
      <ul className="legend timeline-legend">{names.map((name) => <li key={name}><i className={`is-${name}`} />{name}</li>)}</ul>
    </Card>
  );
}
