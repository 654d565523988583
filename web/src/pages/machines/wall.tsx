/** All machines side by side. Only machines in view are drawn. */

import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useLayoutEffect, useRef, useState } from "react";
import type { Machine } from "./node";
import { Tile } from "./tile";

const WIDE = 232;
const GAP = 12;
const HIGH = 146;

export function Wall({ nodes }: { nodes: Machine[] }): ReactNode {
  const place = useRef<HTMLUListElement>(null);
  const [{ columns, top }, setShape] = useState({ columns: 4, top: 0 });

  useLayoutEffect(() => {
    const element = place.current;
    if (!element) return;
    const measure = (): void => {
      const columns = Math.max(1, Math.floor((element.clientWidth + GAP) / (WIDE + GAP)));
      const top = element.getBoundingClientRect().top + window.scrollY;
      setShape((now) => (now.columns === columns && now.top === top ? now : { columns, top }));
    };
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    measure();
    return () => watch.disconnect();
  }, []);

  const rows = useWindowVirtualizer({
    count: Math.ceil(nodes.length / columns),
    estimateSize: () => HIGH + GAP,
    overscan: 4,
    scrollMargin: top,
  });
  return (
    <ul className="wall" ref={place} style={{ height: rows.getTotalSize() }}>
      {rows.getVirtualItems().map((row) => (
        <li key={row.key} style={{ transform: `translateY(${row.start - top}px)`, height: HIGH, gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))` }}>
          {nodes.slice(row.index * columns, (row.index + 1) * columns).map((node) => <Tile key={node.host} node={node} />)}
        </li>
      ))}
    </ul>
  );
}
