/** The jobs that run on a machine. */

import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { get } from "../../api/client";
import type { JobPage } from "../../api/types";
import { brief, command, duration, size } from "../../format";
import { Link } from "../../router";
import { element } from "../job/view";
import { Card, Skeleton, StateBadge, Trouble } from "../../ui/parts";

const MOST = 100;

export function Running({ ids, now }: { ids: number[]; now: number }): ReactNode {
  const some = ids.slice(0, MOST);
  const { data, error } = useQuery({
    queryKey: ["jobs", "on a machine", some.join(",")],
    queryFn: ({ signal }) => get<JobPage>("/jobs", { select: some.map(String), limit: MOST }, signal),
    enabled: some.length > 0,
    placeholderData: (before) => before,
  });
  const title = ids.length ? `Jobs there now (${ids.length})` : "Jobs there now";
  if (ids.length === 0) return <Card title={title}><p className="muted">None runs there.</p></Card>;
  return (
    <Card title={title}>
      {error ? <Trouble error={error} /> : null}
      {!data && !error ? <Skeleton lines={Math.min(6, some.length)} /> : null}
      {data ? (
        <div className="sheet-scroll">
          <table className="sheet">
            <thead><tr><th>Job</th><th>State</th><th>Name</th><th className="rare">User</th><th className="right rare">Cores</th><th className="right rare">Memory</th><th className="right">For</th></tr></thead>
            <tbody>
              {data.jobs.map((job) => (
                <tr key={job.id}>
                  <td><Link to={`/jobs/${job.id}`}>{job.id}</Link></td>
                  <td><StateBadge state={job.state} /></td>
                  <td className="name"><div className="clip" title={command(job.cmd)}>{element(job) ? <span className="tag num">{element(job)}</span> : null} {job.name || brief(job.cmd)}</div></td>
                  <td className="rare">{job.user}</td>
                  <td className="right rare">{job.size.cpus}</td>
                  <td className="right rare">{size(job.size.mem_bytes)}</td>
                  <td className="right nowrap">{job.started_at ? duration(Math.max(0, (now - Date.parse(job.started_at)) / 1000 - (job.suspended_s ?? 0))) : "–"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
      {ids.length > MOST ? <p className="muted">The first {MOST} of them.</p> : null}
    </Card>
  );
}
