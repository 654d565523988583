/** The lab view: machines as small signs, grouped by a property. */

import { type ReactNode, useMemo } from "react";
import { ago, plural } from "../../format";
import { useNow } from "../../now";
import { Link } from "../../router";
import { Icon } from "../../ui/icons";
import { Card } from "../../ui/parts";
import { grouped } from "./grouped";
import { type Machine, mark } from "./node";
import "./lab.css";

const TICK_MS = 15_000;

function Sign({ node, now }: { node: Machine; now: number }): ReactNode {
  const { name, tone, icon, about } = mark(node);
  const since = node.since ? ago(node.since, now) : "";
  return (
    <li>
      <Link to={`/machines/${encodeURIComponent(node.host)}`} className={`lab-machine tone-${tone}`} title={`${node.host}: ${node.condition}, ${node.usage}${since ? `, since ${since}` : ""}. ${about}`}>
        <Icon name={icon} size={12} />
        <b className="clip">{node.host}</b>
        <span>{name}</span>
      </Link>
    </li>
  );
}

/** How many machines of a section are what, the most frequent first. */
function counts(nodes: readonly Machine[]): string {
  const found = new Map<string, number>();
  for (const node of nodes) found.set(mark(node).name, (found.get(mark(node).name) ?? 0) + 1);
  return [...found].sort((a, b) => b[1] - a[1]).map(([name, n]) => `${n} ${name}`).join(" · ");
}

export function Lab({ nodes, by }: { nodes: Machine[]; by: string }): ReactNode {
  const now = useNow(TICK_MS);
  const sections = useMemo(() => grouped(nodes, by), [nodes, by]);
  return (
    <div className="lab">
      {sections.map(([value, its]) => (
        <Card key={value} title={value || `no ${by}`} aside={<span className="muted num">{plural(its.length, "machine")}: {counts(its)}</span>}>
          <ul className="lab-machines">
            {its.map((node) => <Sign key={node.host} node={node} now={now} />)}
          </ul>
        </Card>
      ))}
    </div>
  );
}
