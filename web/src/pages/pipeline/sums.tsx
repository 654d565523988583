/** A bar of elements by state. */

import type { ReactNode } from "react";
import { count, percent } from "../../format";
import { ELEMENT_STATES, type ElementState } from "./words";

export function SumsBar({ counts, label }: { counts: Partial<Record<ElementState, number>>; label: string }): ReactNode {
  const total = ELEMENT_STATES.reduce((all, state) => all + (counts[state] ?? 0), 0);
  const done = total - (counts.waiting ?? 0) - (counts.running ?? 0);
  return (
    <div className="progress" role="progressbar" aria-label={label} aria-valuemin={0} aria-valuemax={Math.max(total, 1)} aria-valuenow={done}
      aria-valuetext={`${percent(done, total)} done`}>
      {ELEMENT_STATES.map((state) => {
        const n = counts[state] ?? 0;
        return n ? <i key={state} className={`ink-${state}`} style={{ flexGrow: n }} title={`${count(n)} ${state}`} /> : null;
      })}
    </div>
  );
}
