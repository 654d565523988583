/** Jobs that wait and have no planned start, and why. */

import type { ReactNode } from "react";
import type { GanttView } from "../../api/types";
import { count } from "../../format";
import { Link } from "../../router";
import { Card, StateBadge } from "../../ui/parts";

export function Waiting({ view }: { view: GanttView }): ReactNode {
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
          <Link to="/jobs?state=held,dependent,blocked,delayed">held, dependent, blocked or delayed jobs</Link>
        </p>
      ) : null}
    </Card>
  );
}
