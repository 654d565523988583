/** The head of the page: the job's name, state and actions. */

import { type ReactNode, useState } from "react";
import type { JobView } from "../../api/types";
import { duration, moment } from "../../format";
import { Link } from "../../router";
import { GroupLinks, groupsOf } from "../../ui/group_links";
import { Icon } from "../../ui/icons";
import "../../ui/sheet.css";
import { StateBadge } from "../../ui/parts";
import { Doing } from "./doing";
import { Hosts } from "./hosts";
import { useNow } from "../../now";
import { WithLinks } from "../../ui/with_links";
import { element, endOf, isLive, shellWords } from "./view";

function CommandLine({ text }: { text: string }): ReactNode {
  const [copied, setCopied] = useState(false);
  const copy = (): void => {
    void navigator.clipboard.writeText(text).then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    });
  };
  return (
    <div className="job-command">
      <code>{text}</code>
      <button type="button" onClick={copy} aria-label={copied ? "Copied" : "Copy the command"}>
        <Icon name={copied ? "complete" : "copy"} size={15} />
      </button>
    </div>
  );
}

/** How long the attempt has run, and how much of its expected time that is. */
function Running({ job }: { job: JobView }): ReactNode {
  const now = useNow();
  if (!job.started_at || !isLive(job)) return null;
  const ran = Math.max(0, (now - Date.parse(job.started_at)) / 1000 - (job.suspended_s ?? 0));
  return (
    <span className="num">
      <span className="faint">running for</span> {duration(ran)}
      {job.expected_end ? <span className="faint"> · expected until {moment(job.expected_end)}</span> : null}
    </span>
  );
}

function Ending({ job }: { job: JobView }): ReactNode {
  if (job.state !== "failed" && job.state !== "cancelled") return null;
  const { cause, how } = endOf(job);
  return (
    <span className="job-ending">
      {cause ? <span><WithLinks text={cause} /></span> : null}
      {how ? <code>{how}</code> : null}
    </span>
  );
}

export function Head({ job }: { job: JobView }): ReactNode {
  const part = element(job);
  return (
    <header className="job-top">
      <div className="job-title">
        <Link to="/jobs" className="job-back" aria-label="All jobs"><Icon name="left" /></Link>
        <h1>
          {job.name ? <><span className="num faint">{job.id}</span> {job.name}</> : `Job ${job.id}`}
        </h1>
        {part ? <span className="tag num" title={`Element ${job.array_index} of array ${job.array_id}: ROTA_ARRAY_INDEX=${job.array_index}`}>{part}</span> : null}
        <StateBadge state={job.state} />
        <Ending job={job} />
        <Doing job={job} />
      </div>
      <CommandLine text={shellWords(job.cmd)} />
      <p className="job-facts">
        <span><span className="faint">{groupsOf(job).length > 1 ? "groups" : "group"}</span> <GroupLinks job={job} /></span>
        <span><span className="faint">user</span> <Link to={`/jobs?user=${encodeURIComponent(job.user)}`}>{job.user}</Link></span>
        <span><span className="faint">queue</span> <Link to="/policy?tab=queues">{job.queue}</Link></span>
        {job.hosts.length ? <span><span className="faint">{job.hosts.length > 1 ? "hosts" : "host"}</span> <Hosts hosts={job.hosts} /></span> : null}
        <span className="num"><span className="faint">priority</span> {job.priority}</span>
        {part ? <span className="num"><span className="faint">array element</span> {part}</span> : null}
        <Running job={job} />
        {job.ended_at && job.wall_s !== null ? <span className="num"><span className="faint">took</span> {duration(job.wall_s)}</span> : null}
      </p>
    </header>
  );
}
