/** The dependencies between jobs of a group, or elements of a pipeline: drawn, or by layers where they are many. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { type Query, get } from "../../api/client";
import type { LayeredNode, LayersView } from "../../api/types";
import { count, moment, plural } from "../../format";
import { Card, Skeleton, Trouble } from "../../ui/parts";
import { Layers } from "./layers";
import { Path } from "./path";
import { Picture } from "./picture";
import { ORDER, inkOf } from "./inks";
import "../pipeline/pipeline.css";
import "./graph.css";

/** An end without a path of known length is one of jobs that wait for room. */
function Ending({ graph, what }: { graph: LayersView; what: string }): ReactNode {
  const words = [
    graph.expected_end ? `expected end ${moment(graph.expected_end)}` : (graph.expected_reason?.message ?? ""),
    graph.unknown ? `${plural(graph.unknown, what)} of unknown duration` : "",
    graph.outside ? `${plural(graph.outside, "dependency", "dependencies")} on others` : "",
    graph.nodes.length && graph.more_edges ? `${count(graph.more_edges)} edges not drawn` : "",
  ].filter(Boolean);
  return words.length ? <p className="muted num">{words.join(" · ")}</p> : null;
}

export function GraphCard({ title, path, query = {}, name, what, find, alone }: {
  title: string; path: string; query?: Query; name: readonly unknown[]; what: string;
  /** The address of an element by its name; jobs have theirs by their id. */
  find?: (element: string) => string; alone?: ReactNode;
}): ReactNode {
  const { data: graph, error } = useQuery({
    queryKey: ["graph", ...name],
    queryFn: ({ signal }) => get<LayersView>(path, query, signal),
    placeholderData: keepPreviousData,
  });
  const to = (node: LayeredNode): string | null => (find ? find(node.name) : node.id === null ? null : `/jobs/${node.id}`);
  if (error && !graph) return <Trouble error={error} />;
  if (!graph) return <Skeleton lines={4} />;
  if (graph.total === 0) return alone ?? null;
  const states = ORDER.filter((state) => graph.counts[state]);
  return (
    <Card title={title} aside={<span className="faint num">{plural(graph.total, what)}</span>} className="graph-card">
      <Path graph={graph} find={to} />
      <Ending graph={graph} what={what} />
      {graph.nodes.length ? <Picture graph={graph} find={to} /> : <Layers graph={graph} what={what} />}
      <ul className="legend" aria-label="States">
        {states.map((state) => <li key={state}><i className={inkOf(state)} />{count(graph.counts[state] ?? 0)} {state}</li>)}
      </ul>
    </Card>
  );
}
