/** Virtual scrolling of a long list: the rows in view, their position, and moving the list. */

import { type RefObject, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { DRIFT, moved, scaleOf, toElement } from "./scale";

const OVERSCAN = 12;
const PAUSE_MS = 180;

export interface Rows {
  first: number;
  /** One past the last drawn row. */
  end: number;
  /** The number of fully visible rows. */
  whole: number;
  height: number;
  /** Where the first drawn row is in the element. */
  top: number;
  place: number;
  narrow: boolean;
  rowHeight: number;
  atTop: boolean;
  moveTo: (place: number) => void;
  /** Bring a row into view, moving no more than needed. */
  reveal: (index: number) => void;
}

interface Where {
  place: number;
  position: number;
}

export function useRows(
  element: RefObject<HTMLElement | null>,
  { count, header, heights }: { count: number; header: number; heights: { wide: number; narrow: number; below: number } },
  start: number,
): Rows {
  const [view, setView] = useState({ height: 600, width: 1000 });
  const narrow = view.width < heights.below;
  const rowHeight = narrow ? heights.narrow : heights.wide;
  const above = narrow ? 0 : header;
  const seen = Math.max(rowHeight, view.height - above);
  const scale = useMemo(() => scaleOf(count * rowHeight, seen), [count, rowHeight, seen]);
  const [where, setWhere] = useState<Where>({ place: start, position: 0 });
  const latest = useRef(where);
  const wanted = useRef<number | null>(start);

  const settle = useCallback((next: Where) => {
    latest.current = next;
    setWhere(next);
  }, []);

  const moveTo = useCallback(
    (place: number) => {
      const far = Math.max(0, scale.list - scale.view);
      const to = Math.min(Math.max(0, place), far);
      if (!element.current) return;
      element.current.scrollTop = toElement(scale, to);
      settle({ place: to, position: element.current.scrollTop });
    },
    [element, scale, settle],
  );

  useLayoutEffect(() => {
    const box = element.current;
    if (!box) return;
    const watch = new ResizeObserver(() => setView({ height: box.clientHeight, width: box.clientWidth }));
    watch.observe(box);
    setView({ height: box.clientHeight, width: box.clientWidth });
    return () => watch.disconnect();
  }, [element]);

  // When the height of the list or its rows changes, the place is kept if it still exists.
  useLayoutEffect(() => {
    if (scale.list === 0) return;
    const place = wanted.current ?? latest.current.place;
    if (place > 0) moveTo(place);
    wanted.current = null;
  }, [scale, moveTo]);

  useEffect(() => {
    const box = element.current;
    if (!box) return;
    let pause: ReturnType<typeof setTimeout> | undefined;
    const right = (): void => {
      const at = toElement(scale, latest.current.place);
      if (Math.abs(at - box.scrollTop) >= 2) {
        box.scrollTop = at;
        settle({ place: latest.current.place, position: box.scrollTop });
      }
    };
    const scrolled = (): void => {
      const { place, position } = latest.current;
      const now = box.scrollTop;
      if (now === position) return;
      const next = moved(scale, place, position, now);
      settle({ place: next, position: now });
      clearTimeout(pause);
      if (Math.abs(toElement(scale, next) - now) > DRIFT) right();
      else pause = setTimeout(right, PAUSE_MS);
    };
    box.addEventListener("scroll", scrolled, { passive: true });
    return () => {
      clearTimeout(pause);
      box.removeEventListener("scroll", scrolled);
    };
  }, [element, scale, settle]);

  const reveal = useCallback(
    (index: number) => {
      const top = index * rowHeight;
      const { place } = latest.current;
      if (top < place) moveTo(top);
      else if (top + rowHeight > place + scale.view) moveTo(top + rowHeight - scale.view);
    },
    [rowHeight, scale, moveTo],
  );

  const first = Math.max(0, Math.floor(where.place / rowHeight) - OVERSCAN);
  const end = Math.min(count, Math.ceil((where.place + seen) / rowHeight) + OVERSCAN);
  return {
    first,
    end,
    whole: Math.max(1, Math.floor(seen / rowHeight)),
    height: scale.element,
    top: first * rowHeight - where.place + where.position,
    place: where.place,
    narrow,
    rowHeight,
    atTop: where.place < rowHeight,
    moveTo,
    reveal,
  };
}
