/** A dependency graph that is small enough to be drawn whole. The critical path is emphasized. */

import { type ReactNode, useLayoutEffect, useMemo, useRef } from "react";
import type { LayeredNode, LayersView } from "../../api/types";
import { duration } from "../../format";
import { Link } from "../../router";
import { tone } from "../../states";
import { Icon, STATE_ICONS } from "../../ui/icons";
import { NODE, type Placed, placed } from "./place";
import "../job/graph.css";
import "./graph.css";

const MARGIN = 4;
const LETTERS = 17;
/** A graph is scaled down to fit, but not below this; then it scrolls. */
const SMALLEST = 0.85;
const CONDITIONS: Record<string, string> = { any: "any end", not_ok: "fails" };

const short = (text: string): string => (text.length > LETTERS ? `${text.slice(0, LETTERS - 1)}…` : text);

export type Find = (node: LayeredNode) => string | null;

function Node({ node, place, to }: { node: LayeredNode; place: Placed; to: string | null }): ReactNode {
  const left = node.left_s ? ` · ${duration(node.left_s)}` : "";
  const box = (
    <g className={`graph-node on-${tone(node.state)} ${node.critical ? "critical" : ""}`} transform={`translate(${place.x} ${place.y})`}>
      <title>{`${node.name}: ${node.state === "group" ? "dependency group" : node.state}${node.left_s ? `, about ${duration(node.left_s)} to run` : ""}${node.critical ? ", on the critical path" : ""}`}</title>
      <rect width={NODE.width} height={NODE.height} rx={6} />
      <g className="graph-sign" transform="translate(10 13)"><Icon name={node.state === "group" ? "groups" : (STATE_ICONS[node.state] ?? "odd")} size={16} /></g>
      <text x={34} y={18} className="graph-name">{short(node.name)}</text>
      <text x={34} y={33} className="graph-state">{node.state === "group" ? "dependency group" : `${node.state}${left}`}</text>
    </g>
  );
  return to === null ? box : <Link to={to}>{box}</Link>;
}

export function Picture({ graph, find }: { graph: LayersView; find: Find }): ReactNode {
  const { nodes, width, height } = useMemo(() => placed(graph), [graph]);
  const at = new Map(nodes.map((each) => [each.at, each]));
  const [wide, high] = [width + 2 * MARGIN, height + 2 * MARGIN];
  const box = useRef<HTMLDivElement>(null);
  const first = nodes.find((each) => graph.nodes[each.at]?.critical) ?? nodes[0];
  useLayoutEffect(() => {
    // A tall graph is shown from where it matters.
    const element = box.current;
    const scale = (element?.firstElementChild?.clientWidth ?? wide) / wide;
    if (element && first) element.scrollTo(first.x * scale - 60, (first.y + NODE.height / 2) * scale - element.clientHeight / 2);
  }, [first?.at, wide, high]);
  return (
    <div className="graph layered" ref={box} tabIndex={0} role="group" aria-label="Dependencies">
      <svg width={wide} height={high} style={{ minWidth: wide * SMALLEST }} viewBox={`${-MARGIN} ${-MARGIN} ${wide} ${high}`}>
        <defs>
          {["end", "critical"].map((name) => (
            <marker key={name} id={`layer-${name}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto">
              <path d="M0 0.5L8 4L0 7.5z" className={name === "end" ? "graph-arrow" : "graph-arrow critical"} />
            </marker>
          ))}
        </defs>
        {graph.edges.map(([parent, child, condition], n) => {
          const [from, to] = [at.get(parent), at.get(child)];
          if (!from || !to) return null;
          const critical = !!graph.nodes[parent]?.critical && !!graph.nodes[child]?.critical;
          const [x1, y1, x2, y2] = [from.x + NODE.width, from.y + NODE.height / 2, to.x - 1, to.y + NODE.height / 2];
          const bend = Math.max(20, Math.min(80, (x2 - x1) / 2));
          const label = CONDITIONS[condition] ?? "";
          return (
            <g key={n}>
              <path className={`graph-edge ${condition === "ok" ? "" : "other"} ${critical ? "critical" : ""}`} markerEnd={`url(#layer-${critical ? "critical" : "end"})`}
                d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`} />
              {label ? <text className="graph-label" x={(x1 + x2) / 2} y={(y1 + y2) / 2 - 4} textAnchor="middle">{label}</text> : null}
            </g>
          );
        })}
        {nodes.map((each) => {
          const node = graph.nodes[each.at];
          return node ? <Node key={each.at} node={node} place={each} to={find(node)} /> : null;
        })}
      </svg>
    </div>
  );
}
