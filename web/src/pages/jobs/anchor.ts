/** New rows above the view would push it away, so the view, or only the row cursor, moves along with them. */

import { useLayoutEffect, useRef } from "react";
import type { JobAt } from "./pages";
import type { Rows } from "./scroll";

/** Rows further away than this were not pushed, they were sorted elsewhere. */
const NEAR = 200;

/** How many rows a job has moved, judged by the rows around it; 0 if unknown. */
export function drift(id: number, index: number, idAt: (index: number) => number | undefined): number {
  if (idAt(index) === id || idAt(index) === undefined) return 0;
  for (let far = 1; far <= NEAR; far += 1) {
    if (idAt(index + far) === id) return far;
    if (index >= far && idAt(index - far) === id) return -far;
  }
  return 0;
}

export function useAnchor(rows: Rows, job: JobAt, shift: (by: number) => void): void {
  const seen = useRef<{ id: number; index: number; place: number } | null>(null);
  useLayoutEffect(() => {
    const before = seen.current;
    const idAt = (index: number): number | undefined => job(index)?.id;
    if (before && before.place === rows.place) {
      const by = drift(before.id, before.index, idAt);
      if (by !== 0) {
        seen.current = null;
        shift(by);
        if (!rows.atTop) rows.moveTo(rows.place + by * rows.rowHeight);
        return;
      }
    }
    const index = Math.ceil(rows.place / rows.rowHeight);
    const id = idAt(index);
    seen.current = id === undefined ? null : { id, index, place: rows.place };
  });
}
