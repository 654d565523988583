/** Cores as little cells, filled if in use. Always two SVG paths, so that a wall of many machines stays fast. */

import type { ReactNode } from "react";

const CELL = 8;
const STEP = 10;

/** Maps cores to cells: if there are too many, a cell stands for several cores. */
export function cells(cores: number, used: number, most: number): { total: number; filled: number; each: number } {
  const each = Math.max(1, Math.ceil(cores / most));
  const total = Math.ceil(cores / each);
  return { each, total, filled: Math.min(total, Math.ceil(used / each - 1e-9)) };
}

function squares(from: number, to: number, columns: number): string {
  let path = "";
  for (let at = from; at < to; at += 1) path += `M${(at % columns) * STEP} ${Math.floor(at / columns) * STEP}h${CELL}v${CELL}h-${CELL}z`;
  return path;
}

export function Cores({ cores, used, columns = 22, rows = 3 }: { cores: number; used: number; columns?: number; rows?: number }): ReactNode {
  const { total, filled, each } = cells(cores, used, columns * rows);
  const high = Math.max(1, Math.ceil(total / columns));
  return (
    <svg className="cores" viewBox={`0 0 ${columns * STEP - 2} ${high * STEP - 2}`} role="img"
      aria-label={`${used} of ${cores} cores in use${each > 1 ? `, a cell is ${each} cores` : ""}`}>
      <path className="free" d={squares(filled, total, columns)} />
      <path className="used" d={squares(0, filled, columns)} />
    </svg>
  );
}
