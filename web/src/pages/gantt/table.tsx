/** The jobs of the chart as a table, for screen readers and for copying. */

import { type ReactNode, useState } from "react";
import { count, moment } from "../../format";
import { Link } from "../../router";
import { StateBadge } from "../../ui/parts";
import { type Bar, has } from "./model";
import type { Window } from "./scale";

const SHOWN = 200;

function visibleBars(bars: readonly Bar[], view: Window, filter: string): Bar[] {
  const words = filter.trim().toLowerCase();
  return bars.filter((bar) => bar.start < view.to && bar.end > view.from && (!words || has(bar, words)));
}

export function JobTable({ bars, view, filter }: { bars: readonly Bar[]; view: Window; filter: string }): ReactNode {
  const [open, setOpen] = useState(false);
  const shown = visibleBars(bars, view, filter);
  return (
    <details className="gantt-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>The same as a table ({count(shown.length)} {shown.length === 1 ? "job" : "jobs"} in this range)</summary>
      {open ? (
        <div className="gantt-table-scroll" tabIndex={0} role="region" aria-label="Jobs in this range">
          <table>
            <thead>
              <tr><th>Job</th><th>State</th><th>Start</th><th>End</th><th>Resources</th><th>Host</th><th>Group</th><th>Gang</th><th>User</th><th>Queue</th></tr>
            </thead>
            <tbody>
              {shown.slice(0, SHOWN).map(({ job, kind, attempt }) => (
                <tr key={`${job.id}.${attempt ?? ""}`}>
                  <td><Link to={`/jobs/${job.id}`}>{job.name || `#${job.id}`}</Link></td>
                  <td><StateBadge state={job.state} /> {kind === "running" || kind === "ended" ? "" : <span className="faint">{kind}</span>}</td>
                  <td className="num">{moment(job.start)}</td>
                  <td className="num">{moment(job.end)}</td>
                  <td className="num">{job.resources ?? "–"}</td>
                  <td>{job.host ?? "–"}</td>
                  <td>{job.group}</td>
                  <td>{job.gang}</td>
                  <td>{job.user}</td>
                  <td>{job.queue}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {shown.length > SHOWN ? <p className="faint">The first {SHOWN} are shown. Zoom in or filter to see the others.</p> : null}
        </div>
      ) : null}
    </details>
  );
}
