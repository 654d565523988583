/** Sessions of pipelines: the latest of each file. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import { get } from "../api/client";
import type { PipelineBriefView } from "../api/types";
import { ago, count, duration, percent, plural } from "../format";
import { useNow } from "../now";
import { Link } from "../router";
import { Command, Empty, Skeleton, StateBadge, Trouble } from "../ui/parts";
import { PageHead } from "../ui/sheet";
import { SumsBar } from "./pipeline/sums";
import { bySums, inOrder, nameOf, settled } from "./pipeline/words";
import "./pipeline/pipeline.css";

const NONE = { processed: 0, skipped: 0, failed: 0, blocked: 0, terminated: 0, waiting: 0, running: 0 };

function Row({ each, now, fetched }: { each: PipelineBriefView; now: number; fetched: number }): ReactNode {
  const sums = each.sums ?? NONE;
  const all = Object.values(sums).reduce((total, n) => total + n, 0);
  const elapsed = each.elapsed_s + (each.state === "running" ? Math.max(0, now - fetched) / 1000 : 0);
  return (
    <tr>
      <td className="pipeline-name">
        <Link to={`/pipelines/${each.session}`} title={each.file}>{nameOf(each.file)}</Link>
        <small className="muted clip" title={each.file}>{each.file}</small>
      </td>
      <td><StateBadge state={each.state} /></td>
      <td className="pipeline-bar">
        <SumsBar counts={bySums(sums)} label={`Progress of ${nameOf(each.file)}`} />
        <small className="muted num">{percent(settled(sums), all)} of {plural(all, "step")}</small>
      </td>
      <td className="num right">{count(each.total)}</td>
      <td className="num right">{sums.failed ? <Link className="tone-of-failed" to={`/pipelines/${each.session}?state=failed`}>{count(sums.failed)}</Link> : "–"}</td>
      <td className="num right rare">{sums.blocked ? count(sums.blocked) : "–"}</td>
      <td className="num right rare">{sums.running ? count(sums.running) : "–"}</td>
      <td className="num right nowrap">{duration(elapsed)}</td>
      <td className="num nowrap rare">{ago(each.started_at, now)}</td>
      <td className="rare">{each.user}</td>
    </tr>
  );
}

export default function Page(): ReactNode {
  const now = useNow();
  const { data, error, dataUpdatedAt } = useQuery({
    queryKey: ["pipelines"],
    queryFn: ({ signal }) => get<PipelineBriefView[]>("/pipelines", {}, signal),
  });
  const sessions = useMemo(() => inOrder(data ?? []), [data]);
  return (
    <>
      <PageHead title="Pipelines" about={data ? `${plural(sessions.length, "pipeline")}, each with its latest session` : ""} />
      {error && !data ? <Trouble error={error} /> : null}
      {!data && !error ? <Skeleton lines={6} /> : null}
      {data && sessions.length === 0 ? (
        <Empty title="No pipeline has been run yet" icon="pipelines">
          <p>Elements with dependencies flow through stages. Write both into a file, and run it:</p>
          <p><Command text="rota pipeline run build.yaml" /></p>
        </Empty>
      ) : null}
      {sessions.length ? (
        <section className="card pipelines">
          <div className="sheet-scroll" tabIndex={0} role="region" aria-label="Pipelines">
            <table className="sheet">
              <thead>
                <tr>
                  <th>Pipeline</th><th>State</th><th>Progress</th><th className="right">Elements</th><th className="right">Failed</th>
                  <th className="right rare">Blocked</th><th className="right rare">Running</th><th className="right">Elapsed</th>
                  <th className="rare">Started</th><th className="rare">User</th>
                </tr>
              </thead>
              <tbody>{sessions.map((each) => <Row key={each.session} each={each} now={now} fetched={dataUpdatedAt} />)}</tbody>
            </table>
          </div>
        </section>
      ) : null}
    </>
  );
}
