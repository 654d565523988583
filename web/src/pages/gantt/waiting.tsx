/** Waiting jobs without a planned start, with the reasons. */

import type { ReactNode } from "react";
import type { GanttView } from "../../api/types";
import { count, plural } from "../../format";
import { Link } from "../../router";
import { useManager } from "../../strip";
import { Card, StateBadge } from "../../ui/parts";

export function Waiting({ view }: { view: GanttView }): ReactNode {
  const { data: manager } = useManager();
  const stopped = manager?.draining ? "draining" : manager?.paused ? "paused" : "";
  const more = view.waiting_total - view.waiting.length;
  return (
    <Card title="Without a planned start" aside={<span className="faint num">{count(view.waiting_total)}</span>} className="gantt-waiting">
      {view.waiting_total === 0 ? <p className="muted">Every waiting job has a planned start.</p> : null}
      <ul>
        {view.waiting.map((each) => (
          <li key={each.id}>
            <Link to={`/jobs/${each.id}`}>
              <span className="clip">{each.name || `Job ${each.id}`}</span>
              <StateBadge state={each.state} />
            </Link>
            <p className="muted">{each.message}</p>
          </li>
        ))}
      </ul>
      {more > 0 ? (
        <p className="faint">
          {view.waiting.length ? `and ${count(more)} more: ` : ""}
          {stopped && view.waiting.length === 0
            ? <><Link to="/jobs?state=ready,held,dependent,blocked,delayed">{plural(more, "job waits", "jobs wait")}</Link>: the manager is {stopped}, and nothing starts until somebody resumes it.</>
            : <Link to={`/jobs?state=${view.plan ? "" : "ready,"}held,dependent,blocked,delayed`}>{view.plan ? "" : "ready, "}held, dependent, blocked or delayed jobs</Link>}
        </p>
      ) : null}
    </Card>
  );
}
