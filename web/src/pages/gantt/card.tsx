/** What is known about the bar under the pointer. */

import { type ReactNode, useLayoutEffect, useRef } from "react";
import { duration, moment } from "../../format";
import { Link } from "../../router";
import { StateBadge } from "../../ui/parts";
import type { Bar } from "./model";

const KINDS = { running: "runs", planned: "planned", reserved: "reserved", ghost: "would run" } as const;

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
  const rows: [string, ReactNode][] = [
    [bar.kind === "running" ? "Started" : "Starts", `${moment(job.start)} (${bar.start > now ? "in " : ""}${duration(Math.abs(bar.start - now) / 1000)}${bar.start > now ? "" : " ago"})`],
    ["Ends by", job.end === null ? "open" : `${moment(job.end)} (${duration(whole)} in all)`],
    ["Resources", job.resources ?? "none of its own"],
    ["Group", job.group],
    ["User", job.user + (job.project ? `, ${job.project}` : "")],
    ["Queue", job.queue],
    ["Type", job.type.join(", ")],
    ["In danger", job.danger ?? ""],
  ];
  return (
    <div ref={card} className={`gantt-card ${touch ? "touch" : ""}`} role={touch ? "dialog" : "tooltip"}>
      <header>
        <b className="clip">{bar.kind === "ghost" ? "Your job would run here" : job.name || `Job ${job.id}`}</b>
        {bar.kind === "ghost" ? null : <StateBadge state={job.state} />}
      </header>
      {bar.kind === "ghost" ? null : <p className="faint">#{job.id}, {KINDS[bar.kind]}{bar.besteffort ? ", besteffort" : ""}</p>}
      <dl>
        {rows.map(([name, value]) => value ? <div key={name}><dt>{name}</dt><dd className="clip">{value}</dd></div> : null)}
      </dl>
      {touch ? (
        <footer>
          <button type="button" className="button small ghost" onClick={close}>Close</button>
          {bar.kind === "ghost" ? null : <Link className="button small primary" to={`/jobs/${job.id}`}>Open</Link>}
        </footer>
      ) : null}
    </div>
  );
}
