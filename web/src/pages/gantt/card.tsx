/** What is known about the bar under the pointer. */

import { type ReactNode, useLayoutEffect, useRef } from "react";
import { duration, moment } from "../../format";
import { Link } from "../../router";
import { StateBadge } from "../../ui/parts";
import type { Bar } from "./model";

const KINDS = { running: "runs", planned: "planned", reserved: "reserved", ghost: "would run", ended: "ended", merged: "", state: "" } as const;

export function HoverCard({ bar, x, y, touch, now, close }: {
  bar: Bar; x: number; y: number; touch: boolean; now: number; close: () => void;
}): ReactNode {
  const card = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = card.current;
    if (!element) return;
    const { offsetWidth, offsetHeight } = element;
    const left = Math.min(x + 14, window.innerWidth - offsetWidth - 8);
    const under = y + 18 + offsetHeight < window.innerHeight;
    element.style.left = `${Math.max(8, left)}px`;
    element.style.top = `${Math.max(8, under ? y + 18 : y - offsetHeight - 10)}px`;
  }, [x, y, bar]);
  const { job } = bar;
  const whole = job.end === null ? null : (bar.end - bar.start) / 1000;
  const behind = bar.kind === "merged" || bar.kind === "state";
  const over = bar.kind === "ended";
  const rows: [string, ReactNode][] = behind ? [
    ["From", moment(job.start)],
    ["To", `${moment(job.end)} (${duration(whole)})`],
    ["Host", job.host],
  ] : [
    [bar.kind === "running" || over ? "Started" : "Starts", `${moment(job.start)} (${bar.start > now ? "in " : ""}${duration(Math.abs(bar.start - now) / 1000)}${bar.start > now ? "" : " ago"})`],
    [over ? "Ended" : "Ends by", job.end === null ? "open" : `${moment(job.end)} (${duration(whole)} in all)`],
    ["Resources", job.resources ?? (over ? "not known: any free ones are drawn" : "none of its own")],
    ["Attempt", (bar.attempt ?? 1) > 1 ? String(bar.attempt) : ""],
    ["Group", job.group],
    ["Gang", job.gang ?? ""],
    ["User", job.user + (job.project ? `, ${job.project}` : "")],
    ["Queue", job.queue],
    ["Type", job.type.join(", ")],
    ["In danger", job.danger ?? ""],
  ];
  return (
    <div ref={card} className={`gantt-card ${touch ? "touch" : ""}`} role={touch ? "dialog" : "tooltip"}>
      <header>
        <b className="clip">{bar.kind === "ghost" ? "Your job would run here" : bar.about ?? (job.name || `Job ${job.id}`)}</b>
        {bar.kind === "ghost" || behind ? null : <StateBadge state={job.state} />}
      </header>
      {bar.kind === "merged" ? <p className="faint">More attempts than can be drawn one by one: zoom in.</p> : null}
      {bar.kind === "ghost" || behind ? null : <p className="faint">#{job.id}, {KINDS[bar.kind]}{bar.besteffort ? ", besteffort" : ""}</p>}
      <dl>
        {rows.map(([name, value]) => value ? <div key={name}><dt>{name}</dt><dd className="clip">{value}</dd></div> : null)}
      </dl>
      {touch ? (
        <footer>
          <button type="button" className="button small ghost" onClick={close}>Close</button>
          {bar.kind === "ghost" || behind ? null : <Link className="button small primary" to={`/jobs/${job.id}`}>Open</Link>}
        </footer>
      ) : null}
    </div>
  );
}
