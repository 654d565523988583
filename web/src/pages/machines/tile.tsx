/** One machine in the wall. */

import { type ReactNode, memo } from "react";
import { moment, plural, size } from "../../format";
import { Link } from "../../router";
import { Icon } from "../../ui/icons";
import { Meter } from "../../ui/sheet";
import { Cores } from "./cores";
import { type Machine, mark } from "./node";

export function MarkBadge({ node }: { node: Machine }): ReactNode {
  const { name, tone, icon, about } = mark(node);
  return (
    <span className={`badge tone-${tone}`} title={about}>
      <Icon name={icon} size={12} />
      {name}
    </span>
  );
}

const rounded = (value: number): string => String(Math.round(value * 100) / 100);

// A machine that did not change is the same object after a refresh, and is not drawn again.
export const Tile = memo(function Tile({ node }: { node: Machine }): ReactNode {
  const away = !node.connected || node.state !== "alive";
  return (
    <Link to={`/machines/${encodeURIComponent(node.host)}`} className={`tile ${away ? "away" : ""}`}>
      <span className="top">
        <b className="clip" title={node.host}>{node.host}</b>
        <MarkBadge node={node} />
      </span>
      <Cores cores={node.cores} used={node.cores_in_use} />
      <span className="memory">
        <Meter part={node.mem_in_use} whole={node.mem_bytes} label="Memory" tone="good"
          text={`${size(node.mem_in_use)} of ${size(node.mem_bytes)}`} />
        <span className="muted num">{node.mem_bytes ? `${size(node.mem_in_use)} / ${size(node.mem_bytes)}` : "memory unknown"}</span>
      </span>
      <span className="foot muted num">
        <span>{rounded(node.cores_in_use)} / {plural(node.cores, "core")}</span>
        {node.gpus ? <span>{plural(node.gpus, "GPU")}</span> : null}
        <span>{node.jobs.length ? plural(node.jobs.length, "job") : "no jobs"}</span>
        <span title={node.since ? `since ${moment(node.since)}` : ""}>{node.condition === "automated" ? node.usage : node.condition}</span>
      </span>
    </Link>
  );
});
