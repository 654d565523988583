/** The critical path: what has to be done one after the other and takes longest. */

import type { ReactNode } from "react";
import type { LayersView } from "../../api/types";
import { count, duration } from "../../format";
import { Link } from "../../router";
import { Icon, STATE_ICONS } from "../../ui/icons";
import type { Find } from "./picture";

const SHOWN = 12;

export function Path({ graph, find }: { graph: LayersView; find: Find }): ReactNode {
  if (graph.path.length === 0) return null;
  const shown = graph.path.slice(0, SHOWN);
  const more = graph.path_total - shown.length;
  return (
    <div className="critical-path">
      <h3>
        Critical path{graph.path_s === null ? <span className="muted"> · took longest</span> : <span className="num"> · {graph.unknown ? "at least " : "≈ "}{duration(graph.path_s)} left</span>}
      </h3>
      <ol>
        {shown.map((node, at) => {
          const to = find(node);
          const inside = <><Icon name={STATE_ICONS[node.state] ?? "odd"} size={12} /><span className="clip">{node.name}</span>{node.left_s ? <small className="num muted">{duration(node.left_s)}</small> : null}</>;
          return <li key={at} className={`word-${node.state}`}>{to === null ? <span>{inside}</span> : <Link to={to}>{inside}</Link>}</li>;
        })}
        {more > 0 ? <li className="muted num">{count(more)} more</li> : null}
      </ol>
    </div>
  );
}
