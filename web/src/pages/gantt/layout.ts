/** The layout of the rows: a host is one row, or one line per core when expanded. */

import type { Bar, Piece, Plan, Row } from "./model";
import type { Window } from "./scale";

export const AXIS = 36;
export const CLOSED = 26;
const CORE = 16;
const WIDE_CORE = 26;
/** Hosts with at most this many cores get taller lines. */
const FEW = 16;
const GAP = 2;

export interface Laid {
  row: Row;
  top: number; //: below the axis
  height: number;
  open: boolean;
}

export interface Layout {
  rows: Laid[];
  height: number;
}

export function layout(plan: Plan, open: ReadonlySet<string>): Layout {
  const core = plan.rows.reduce((sum, row) => sum + row.cores, 0) <= FEW ? WIDE_CORE : CORE;
  let top = 0;
  const rows = plan.rows.map((row): Laid => {
    const isOpen = open.has(row.host.host);
    const height = isOpen ? Math.max(CLOSED, row.cores * core + GAP * 2) : CLOSED;
    const laid = { row, top, height, open: isOpen };
    top += height;
    return laid;
  });
  return { rows, height: top };
}

/** The first row that ends below a height. */
export function rowAt({ rows }: Layout, y: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const row = rows[middle];
    if (row && row.top + row.height <= y) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The vertical extent of cores within a row; a piece without cores is a thin line at the bottom. */
export function extent(laid: Laid, first: number, last: number): [y: number, height: number] {
  const each = (laid.height - GAP * 2) / Math.max(1, laid.row.cores);
  return [laid.top + GAP + first * each, (last - first + 1) * each];
}

export const foot = (laid: Laid): [y: number, height: number] => [laid.top + laid.height - 4, 3];

/** The topmost piece at a point; without one, the background there. */
export function hit(laid: Layout, view: Window, width: number, x: number, y: number): Piece | null {
  const row = laid.rows[rowAt(laid, y)];
  if (!row || y < row.top) return null;
  const perPixel = (view.to - view.from) / width;
  const at = view.from + x * perPixel;
  const near = perPixel; // a bar is at least a pixel wide
  for (let i = row.row.pieces.length - 1; i >= 0; i -= 1) {
    const piece = row.row.pieces[i];
    if (!piece || piece.bar.start > at + near || Math.max(piece.bar.end, piece.bar.start + near) < at - near) continue;
    if (piece.cores.length === 0) {
      const [top, height] = foot(row);
      if (y >= top - 1 && y <= top + height) return piece;
    }
    for (const [first, last] of piece.cores) {
      const [top, height] = extent(row, first, last);
      if (y >= top && y <= top + height) return piece;
    }
  }
  const behind = row.row.merged.find((bar) => covers(bar, at)) ?? row.row.states.find((bar) => covers(bar, at));
  return behind ? { bar: behind, cores: [] } : null;
}

const covers = (bar: Bar, at: number): boolean => bar.start <= at && at < bar.end;
