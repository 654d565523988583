/** The rows of an output. Only rows in view are laid out, so that a million cost little. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, type RefObject, memo, useCallback, useEffect, useLayoutEffect, useRef } from "react";
import { count } from "../../format";
import { classes, spans } from "./ansi";
import type { Row, Rows } from "./rows";

const LINE = 18;
/** This near to the end counts as the end, which moves on while the user scrolls to it. */
const NEAR = 40;

const Line = memo(function Line({ row }: { row: Row }): ReactNode {
  if (row.gap) return <span className="output-gap">{count(row.gap)} bytes are not kept here</span>;
  return spans(row.text, row.style).map((each, at) =>
    each.style ? <span key={at} className={classes(each.style)}>{each.text}</span> : each.text,
  );
});

export function Lines({ rows, version, wrap, following, follow, label, box, hits, hit }: {
  rows: Rows; version: number; wrap: boolean; following: boolean; follow: (on: boolean) => void; label: string;
  box: RefObject<HTMLDivElement | null>; hits: ReadonlySet<number>; hit: number | null;
}): ReactNode {
  const seen = useRef(0);
  const total = rows.rows.length;
  const { base } = rows;
  // Stable while the keys are the same: a new function would make the list measure all rows again.
  const key = useCallback((at: number) => base + at, [base]);
  const list = useVirtualizer({
    count: total,
    getScrollElement: () => box.current,
    estimateSize: () => LINE,
    getItemKey: key,
    overscan: 24,
    paddingStart: 8,
    paddingEnd: 8,
    scrollPaddingEnd: 8,
  });

  useEffect(() => list.measure(), [wrap, list]);
  useLayoutEffect(() => {
    if (following && total > 0) list.scrollToIndex(total - 1, { align: "end" });
  }, [following, version, total, wrap, list]);

  useLayoutEffect(() => {
    if (hit !== null) list.scrollToIndex(hit - rows.base, { align: "center" });
  }, [hit, rows, list]);

  const scrolled = (): void => {
    const element = box.current;
    if (!element) return;
    const top = element.scrollTop;
    const left = element.scrollHeight - top - element.clientHeight;
    // Scrolling up is always by the user; the page itself only scrolls down.
    if (top < seen.current - 1 && left > 1) follow(false);
    else if (left <= NEAR && top > seen.current) follow(true);
    seen.current = top;
  };

  return (
    <div ref={box} className={`output-box ${wrap ? "wrap" : ""}`} onScroll={scrolled} tabIndex={0} role="region" aria-label={label}>
      <div
        className="output-rows"
        style={{ height: list.getTotalSize(), ...(wrap ? {} : { minWidth: `calc(${rows.widest}ch + 24px)` }) }}
      >
        {list.getVirtualItems().map((item) => {
          const row = rows.rows[item.index];
          return row ? (
            <div
              key={item.key} data-index={item.index} ref={wrap ? list.measureElement : undefined} className={`output-row ${hits.has(rows.base + item.index) ? "hit" : ""} ${hit === rows.base + item.index ? "here" : ""}`}
              style={{ transform: `translateY(${item.start}px)` }}
            >
              <Line row={row} />
            </div>
          ) : null;
        })}
      </div>
    </div>
  );
}
