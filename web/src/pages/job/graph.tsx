/** The parents and dependents of the job as a small graph. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useLayoutEffect, useMemo, useRef } from "react";
import { get } from "../../api/client";
import type { GraphNode, GraphView } from "../../api/types";
import { plural } from "../../format";
import { Link } from "../../router";
import { tone } from "../../states";
import { STATE_ICONS, Icon } from "../../ui/icons";
import { Card } from "../../ui/parts";
import { type Placed, NODE, layout } from "./layers";
import "./graph.css";

const MARGIN = 3;
const LETTERS = 18;
/** A graph is scaled down to fit, but not below this; then it scrolls. */
const SMALLEST = 0.75;
const CONDITIONS: Record<string, string> = { any: "any end", not_ok: "fails", notok: "fails", failed: "fails" };

const short = (text: string): string => (text.length > LETTERS ? `${text.slice(0, LETTERS - 1)}…` : text);

function Node({ node, place, self }: { node: GraphNode; place: Placed; self: boolean }): ReactNode {
  const title = node.id === null ? node.name : `job ${node.id}, ${node.state}: ${node.name}`;
  const box = (
    <g className={`graph-node on-${tone(node.state)} ${self ? "self" : ""}`} transform={`translate(${place.x} ${place.y})`}>
      <title>{title}</title>
      <rect width={NODE.width} height={NODE.height} rx={6} />
      <g className="graph-sign" transform="translate(10 13)"><Icon name={node.id === null ? "groups" : (STATE_ICONS[node.state] ?? "odd")} size={16} /></g>
      <text x={34} y={18} className="graph-name">{short(node.name || "removed")}</text>
      <text x={34} y={33} className="graph-state">{node.id === null ? "dependency group" : `${node.id} · ${node.state}`}</text>
    </g>
  );
  return node.id === null || self ? box : <Link to={`/jobs/${node.id}`}>{box}</Link>;
}

function Picture({ graph }: { graph: GraphView }): ReactNode {
  const { nodes, width, height } = useMemo(() => layout(graph), [graph]);
  const box = useRef<HTMLDivElement>(null);
  const at = new Map(nodes.map((each) => [each.at, each]));
  const self = at.get(0);
  useLayoutEffect(() => {
    // Scroll to the job itself, not to the first of its ancestors.
    const element = box.current;
    const scale = (element?.firstElementChild?.clientWidth ?? width) / (width + 2 * MARGIN);
    if (element && self) element.scrollTo((self.x + NODE.width / 2) * scale - element.clientWidth / 2, (self.y + NODE.height / 2) * scale - element.clientHeight / 2);
  }, [self?.x, self?.y, width]);
  return (
    <div className="graph" ref={box} tabIndex={0} role="group" aria-label="Dependencies">
      <svg
        width={width + 2 * MARGIN} height={height + 2 * MARGIN} style={{ minWidth: (width + 2 * MARGIN) * SMALLEST }}
        viewBox={`${-MARGIN} ${-MARGIN} ${width + 2 * MARGIN} ${height + 2 * MARGIN}`}
      >
        <defs>
          <marker id="graph-end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 0.5L8 4L0 7.5z" className="graph-arrow" />
          </marker>
        </defs>
        {graph.edges.map(([parent, child, condition], n) => {
          const [from, to] = [at.get(parent), at.get(child)];
          if (!from || !to) return null;
          const [x1, y1, x2, y2] = [from.x + NODE.width, from.y + NODE.height / 2, to.x - 1, to.y + NODE.height / 2];
          const bend = Math.max(20, (x2 - x1) / 2);
          const label = CONDITIONS[condition] ?? (condition === "ok" ? "" : condition.replaceAll("_", " "));
          return (
            <g key={n}>
              <path
                className={`graph-edge ${condition === "ok" ? "" : "other"}`} markerEnd="url(#graph-end)"
                d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`}
              />
              {label ? <text className="graph-label" x={(x1 + x2) / 2} y={(y1 + y2) / 2 - 4} textAnchor="middle">{label}</text> : null}
            </g>
          );
        })}
        {nodes.map((each) => {
          const node = graph.nodes[each.at];
          return node ? <Node key={each.at} node={node} place={each} self={each.at === 0} /> : null;
        })}
      </svg>
    </div>
  );
}

export function Graph({ id }: { id: number }): ReactNode {
  const { data } = useQuery({
    queryKey: ["around", id, "graph"],
    queryFn: ({ signal }) => get<GraphView>(`/jobs/${id}/graph`, {}, signal),
  });
  if (!data || data.nodes.length < 2) return null;
  return (
    <Card title="Dependencies" aside={data.more ? <span className="faint">{plural(data.more, "more job")} not shown</span> : undefined}>
      <Picture graph={data} />
    </Card>
  );
}
