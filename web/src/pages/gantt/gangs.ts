/** Members of one gang, which begin together and are joined by a line. */

import { type Layout, extent, foot } from "./layout";
import type { Bar } from "./model";

/** Members begin together, but their starts are noted one by one. */
const NEAR_MS = 60_000;

export interface GangLine {
  bar: Bar; //: one of the members
  start: number; //: ms
  ends: [top: number, bottom: number]; //: of the line, in the layout
  members: number[]; //: where each member is
}

/** Are these members of the same gang, in the same execution? */
export const together = (one: Bar, other: Bar): boolean =>
  Boolean(one.job.gang) && one.job.gang === other.job.gang && one.job.user === other.job.user && Math.abs(one.start - other.start) <= NEAR_MS;

const known = new WeakMap<Layout, GangLine[]>();

/** The lines of all gangs with several members in this layout; computed once for each. */
export function gangLines(layout: Layout): GangLine[] {
  const found = known.get(layout);
  if (found) return found;
  const open = new Map<string, GangLine[]>(); //: by name
  for (const laid of layout.rows) {
    for (const { bar, cores } of laid.row.pieces) {
      if (!bar.job.gang) continue;
      const [first] = cores;
      const [top, high] = first ? extent(laid, first[0], first[1]) : foot(laid);
      const y = top + high / 2;
      const same = open.get(bar.job.gang) ?? [];
      open.set(bar.job.gang, same);
      const line = same.find((each) => together(each.bar, bar));
      if (!line) same.push({ bar, start: bar.start, ends: [y, y], members: [y] });
      else {
        line.start = Math.min(line.start, bar.start);
        line.ends = [Math.min(line.ends[0], y), Math.max(line.ends[1], y)];
        line.members.push(y);
      }
    }
  }
  const made = [...open.values()].flat().filter((each) => each.members.length > 1);
  known.set(layout, made);
  return made;
}
