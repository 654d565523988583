/** A large dependency graph: one bar for each layer, as high as it has nodes, coloured by their states. */

import { type ReactNode, useState } from "react";
import type { LayersView } from "../../api/types";
import { count, plural } from "../../format";
import { ORDER, inkOf } from "./inks";
import { type Bar, bars } from "./place";

const spoken = ({ first, last }: Bar): string => (first === last ? `layer ${first + 1}` : `layers ${first + 1}–${last + 1}`);
const told = (bar: Bar): string => bar.parts.map(([state, n]) => `${count(n)} ${state}`).join(", ");

export function Layers({ graph, what }: { graph: LayersView; what: string }): ReactNode {
  const [open, setOpen] = useState(false);
  const found = bars(graph, ORDER);
  const most = Math.max(1, ...found.map((bar) => bar.total));
  const height = (graph.layers.at(-1)?.last ?? -1) + 1;
  return (
    <>
      <p className="muted num">
        {plural(graph.total, what)} in {plural(height, "layer")}, each with all that depends only on what is to the left of it. The highest has {count(most)}.
      </p>
      <div className="layer-bars" role="img" aria-label={`${plural(height, "layer")}; the numbers are in the table below`}>
        {found.map((bar) => (
          <div key={bar.first} title={`${spoken(bar)}: ${told(bar)}`}>
            <span style={{ height: `${Math.max(1.5, (100 * bar.total) / most)}%` }}>
              {bar.parts.map(([state, n]) => <i key={state} className={inkOf(state)} style={{ flexGrow: n }} />)}
            </span>
          </div>
        ))}
      </div>
      <details className="layer-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>The same as a table</summary>
        {open ? (
          <div className="sheet-scroll layer-scroll" tabIndex={0} role="region" aria-label="Layers">
            <table className="sheet">
              <thead><tr><th>Layer</th><th className="right">Number</th><th>States</th></tr></thead>
              <tbody>{found.map((bar) => <tr key={bar.first}><td className="num">{spoken(bar)}</td><td className="num right">{count(bar.total)}</td><td className="num">{told(bar)}</td></tr>)}</tbody>
            </table>
          </div>
        ) : null}
      </details>
    </>
  );
}
