/** All other facts about the job, without empty ones. */

import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { get } from "../../api/client";
import type { JobPage, JobView } from "../../api/types";
import { byName, duration, moment, plural, size } from "../../format";
import { Link } from "../../router";
import { tone } from "../../states";
import { Card } from "../../ui/parts";
import { element, shellWords } from "./view";
import "./details.css";

type Line = [name: string, value: ReactNode];

/** The concurrency limit of an array has an internal name, which is not shown. */
const OF_ARRAY = /^array-[0-9a-f]{12}$/;

const list = (words: string[]): ReactNode =>
  words.length ? words.map((each, at) => <code key={at} className="details-word">{each}</code>) : null;

const at = (time: string | null): ReactNode => (time ? <time dateTime={time} title={time}>{moment(time)}</time> : null);

/** The parents of a job; a single job is a link. */
const after = (words: string[]): ReactNode =>
  words.length
    ? words.map((each, n) => {
        const id = /(?:^|:)(\d+)$/.exec(each)?.[1];
        return <span key={n} className="details-word">{id ? <Link to={`/jobs/${id}`}>{each}</Link> : each}</span>;
      })
    : null;

/** The amounts that a waiting job would get. */
function takes({ size: it, request, started_at, ended_at }: JobView): ReactNode {
  if (started_at !== null || ended_at !== null) return null;
  const cores = it.cpus ? `${it.cpus} ${it.cpus === 1 ? "core" : "cores"}` : "no core";
  const words = [
    request ? "" : cores, size(it.mem_bytes), it.disk_bytes ? `${size(it.disk_bytes)} disk` : "",
    !request && it.gpus ? `${it.gpus} GPU` : "", duration(it.time_s),
  ].filter(Boolean).join(" · ");
  return words;
}

function successor(job: JobView): ReactNode {
  if (job.replaced_by === null) return null;
  return job.replaced_by ? <Link to={`/jobs/${job.replaced_by}`}>job {job.replaced_by}</Link> : "nobody; its input has no such line any more";
}

function lines(job: JobView): Line[] {
  return [
    ["replaced by", successor(job)],
    ["takes", takes(job)],
    ["request", job.request ? list(job.request) : null],
    ["where", job.where ? <code>{job.where}</code> : null],
    ["types", list(job.type)],
    ["cores", job.resources ? <span title="The numbers of the cores that it has">{job.resources}{job.hosts.length ? ` of ${[...job.hosts].sort(byName).join(", ")}` : ""}</span> : null],
    ["promised", job.promised?.message ?? null],
    ["pool", job.pool],
    ["walltime", job.pending_walltime_s ? `${duration(job.pending_walltime_s)} more pending` : null],
    ["limits", list(job.limits.map((each) => (job.array_id !== null && OF_ARRAY.test(each) ? `that of array ${job.array_id}` : each)))],
    ["waits for", after(job.after)],
    ["dependency groups", list(job.dep_groups)],
    ["reservation", at(job.at)],
    ["array element", element(job)],
    ["project", job.project || null],
    ["retries", job.retries ? `${job.retries_left} of ${job.retries} left` : "none"],
    ["backoff", job.retries && job.backoff_s ? duration(job.backoff_s) : null],
    ["no retry over", job.no_retry_over_s ? duration(job.no_retry_over_s) : null],
    ["retry on", job.retry_on ? job.retry_on.join(", ") || "nothing" : null],
    ["on success", list(job.on_success)],
    ["on failure", list(job.on_failure)],
    ["on exit", list(job.on_exit)],
    ["learning group", job.learn ? <Link to={`/learning?group=${encodeURIComponent(job.learn)}`}>{job.learn}</Link> : null],
    ["override", job.override || null],
    ["input", job.input_bytes ? size(job.input_bytes) : null],
    ["directory", job.cwd ? <code>{job.cwd}</code> : null],
    ["scratch", job.scratch ? "a private directory" : null],
    ["pipefail", job.pipefail ? "yes" : null],
    ["stdout to", job.stdout ? <code>{job.stdout}</code> : null],
    ["stderr to", job.stderr ? <code>{job.stderr}</code> : null],
    ["submitted", at(job.submitted_at)],
    ["ready", at(job.ready_at)],
    ["started", at(job.started_at)],
    ["ended", at(job.ended_at)],
    ["expected end", job.ended_at ? null : at(job.expected_end)],
    ["key", <code className="faint">{job.key}</code>],
  ];
}

export function Details({ job }: { job: JobView }): ReactNode {
  return (
    <Card title="Details">
      <dl className="details">
        {lines(job).map(([name, value]) =>
          value === null || value === "" ? null : <div key={name}><dt>{name}</dt><dd className="num">{value}</dd></div>,
        )}
      </dl>
    </Card>
  );
}

/** How many neighbours to show on both sides in a large array. */
const NEAR = 100;

export function Siblings({ job }: { job: JobView }): ReactNode {
  const array = job.array_id;
  const from = Math.max(array ?? 0, job.id - NEAR);
  const { data } = useQuery({
    queryKey: ["jobs", "array", array, from],
    queryFn: ({ signal }) =>
      get<JobPage>("/jobs", { select: [`${from}-${job.id + NEAR}`], sort: "id", limit: 2 * NEAR + 1 }, signal),
    enabled: array !== null,
  });
  if (array === null || !data) return null;
  const elements = data.jobs.filter((each) => each.array_id === array);
  const whole = from === array && (data.jobs.at(-1)?.id ?? 0) < job.id + NEAR;
  return (
    <Card title={`Array ${array}`} aside={<span className="faint num">{plural(elements.length, "element")}{whole ? "" : " near this one"}</span>}>
      <ul className="siblings">
        {elements.map((each) => (
          <li key={each.id}>
            <Link
              to={`/jobs/${each.id}`} className={`tone-${tone(each.state)}`} title={`job ${each.id}, ${each.state}: ${shellWords(each.cmd)}`}
              aria-current={each.id === job.id ? "page" : undefined} aria-label={`element ${each.array_index}, ${each.state}`}
            >
              {each.array_index}
            </Link>
          </li>
        ))}
      </ul>
    </Card>
  );
}
