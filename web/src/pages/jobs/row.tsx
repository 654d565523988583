/** One job as a row of the table, or as a small card where there is no room for columns. */

import { type MouseEvent, type ReactNode, memo } from "react";
import type { JobView } from "../../api/types";
import { brief, command, duration, moment, size } from "../../format";
import { Link } from "../../router";
import { ACTIVE, STUCK, WAITING } from "../../states";
import { GroupLinks, groupsOf } from "../../ui/group_links";
import { StateBadge } from "../../ui/parts";
import "../../ui/sheet.css";
import { element as elementOf, endOf } from "../job/view";
import { lasted, since } from "./when";

interface RowProps {
  job: JobView | null | undefined;
  index: number;
  selected: boolean;
  current: boolean;
  /** Where it stands among neighbours of the same gang: first, middle, last, only; empty: in no gang. */
  place: string;
  /** A rounded time: rows without a running clock are redrawn only when it changes. */
  now: number;
  pick: (index: number, event: MouseEvent) => void;
  toggle: (index: number, range: boolean) => void;
  open: (index: number) => void;
}

/** How it ended, or why it waits. */
function Ending({ job }: { job: JobView }): ReactNode {
  const bad = job.state === "failed" || job.state === "lost" || job.state === "blocked";
  const { cause, how } = job.state === "complete" || ACTIVE.includes(job.state) ? { cause: "", how: "" } : endOf(job);
  // The state has its own column, so "held by root" is shortened to "by root".
  const shown = cause.startsWith(`${job.state} `) ? cause.slice(job.state.length + 1) : cause;
  return (
    <span className={`clip ending ${bad ? "bad" : ""}`} role="cell" title={[cause, how].filter(Boolean).join("; ")}>
      {shown || how}
      {shown && how ? <span className="faint"> {how}</span> : null}
    </span>
  );
}

/** It waits for a given time, not for resources. */
function Reserved({ at }: { at: string }): ReactNode {
  return <span className="tag">reserved for {moment(at).replace(/:00$/, "")}</span>;
}

function Memory({ job }: { job: JobView }): ReactNode {
  const used = job.peak_mem_bytes;
  const given = job.amounts?.mem_bytes.given ?? null;
  const held = given ?? job.size.mem_bytes;
  const title = used !== null ? `used ${size(used)} of ${size(held)} given` : given !== null ? `was given ${size(held)}` : `would get ${size(held)}`;
  return (
    <span className="num right memory" role="cell" title={title}>
      {used === null ? null : <b>{size(used)}</b>}
      <span className="faint">{used === null ? size(held) : ` / ${size(held)}`}</span>
    </span>
  );
}

export const Row = memo(function Row({ job, index, selected, current, place, now, pick, toggle, open }: RowProps): ReactNode {
  if (job === null) return <div className="job-row faint" role="row" aria-rowindex={index + 2}><i /><span role="cell">removed</span></div>;
  if (job === undefined)
    return (
      <div className="job-row pending" role="row" aria-rowindex={index + 2} aria-busy="true">
        <i /><i /><i /><i className="long" /><i />
      </div>
    );
  const text = command(job.cmd);
  const element = elementOf(job);
  const ran = lasted(job, now);
  return (
    <div
      id={`row-${index}`} role="row" aria-rowindex={index + 2} aria-selected={selected}
      className={`job-row ${selected ? "selected" : ""} ${current ? "current" : ""} ${place ? `gang gang-${place}` : ""}`}
      onClick={(event) => pick(index, event)} onDoubleClick={() => open(index)}
    >
      <span className="check" role="cell" onClick={(event) => event.stopPropagation()}>
        <label>
          <input
            type="checkbox" checked={selected} aria-label={`Select job ${job.id}`} tabIndex={-1}
            onChange={(event) => toggle(index, (event.nativeEvent as unknown as { shiftKey?: boolean }).shiftKey === true)}
          />
        </label>
      </span>
      <span role="cell" className="num id"><Link to={`/jobs/${job.id}`} tabIndex={-1}>{job.id}</Link></span>
      <span role="cell" className="state"><StateBadge state={job.state} /></span>
      <span role="cell" className="clip what" title={job.name ? `${job.name}: ${text}` : text}>
        <Link to={`/jobs/${job.id}`} tabIndex={-1}>
          {job.at && WAITING.includes(job.state) && !STUCK.includes(job.state) ? <Reserved at={job.at} /> : null}
          {element ? <span className="tag num" title={`Element ${job.array_index} of array ${job.array_id}: ROTA_ARRAY_INDEX=${job.array_index}`}>{element}</span> : null}
          {job.gang ? <span className="tag gang-tag" title={`Member of the gang ${job.gang}: all begin together`}>{job.gang}</span> : null}
          {job.name ? <b>{job.name}</b> : null}
          <span className="mono">{brief(job.cmd)}</span>
        </Link>
      </span>
      <span role="cell" className="clip group" title={groupsOf(job).join(", ")}>
        <GroupLinks job={job} tabIndex={-1} />
      </span>
      <span role="cell" className="clip user">{job.user}</span>
      <span role="cell" className="clip queue">{job.queue}</span>
      <span role="cell" className="num right priority">{job.priority || ""}</span>
      <span role="cell" className="num right submitted" title={moment(job.submitted_at)}>{since(job.submitted_at, now)}</span>
      <span role="cell" className="num right started" title={job.started_at ? moment(job.started_at) : ""}>
        {since(job.started_at, now)}
      </span>
      <span role="cell" className="num right ended" title={job.ended_at ? moment(job.ended_at) : ""}>
        {since(job.ended_at, now)}
      </span>
      <span role="cell" className="num right wall">{ran === null ? "" : duration(ran)}</span>
      <span role="cell" className="num right cpu">{job.cpu_s === null ? "" : duration(job.cpu_s)}</span>
      <Memory job={job} />
      <span role="cell" className="clip host" title={job.hosts.join(", ")}>{job.host}{job.hosts.length > 1 ? ` +${job.hosts.length - 1}` : ""}</span>
      <Ending job={job} />
    </div>
  );
});
