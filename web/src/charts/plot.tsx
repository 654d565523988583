/** The frame of a small chart of minutes: axes, a pointer with a note, and keys that move it. Its content is SVG. */

import { type ReactNode, useEffect, useRef, useState } from "react";
import "./plot.css";

export interface Box {
  width: number;
  height: number;
  x: (at: number) => number; //: the left edge of a column
  step: number;
  y: (value: number) => number;
}

const LEFT = 40;
const BOTTOM = 20;
/** Pixels between two times of the axis. */
const APART = 64;
const TOP = 8;

export function Plot({ n, top, height, label, axis, when, note, draw }: {
  n: number; top: number; height: number; label: string;
  axis: (value: number) => string; when: (at: number) => string; note: (at: number) => ReactNode; draw: (box: Box) => ReactNode;
}): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [at, setAt] = useState<number | null>(null);
  useEffect(() => {
    if (!place.current) return;
    const watch = new ResizeObserver(([entry]) => entry && setWidth(Math.floor(entry.contentRect.width)));
    watch.observe(place.current);
    return () => watch.disconnect();
  }, []);
  const inner = Math.max(1, width - LEFT);
  const step = inner / n;
  const box: Box = {
    width, height, step,
    x: (each) => LEFT + each * step,
    y: (value) => TOP + (1 - value / top) * (height - TOP - BOTTOM),
  };
  const every = [1, 2, 5, 10, 20].find((each) => each * step >= APART) ?? 30;
  return (
    <div
      ref={place} className="plot" style={{ height }} role="img" aria-label={label} tabIndex={0}
      onPointerMove={(event) => {
        const x = event.clientX - event.currentTarget.getBoundingClientRect().left - LEFT;
        setAt(x >= 0 && x < inner ? Math.floor(x / step) : null);
      }}
      onPointerLeave={() => setAt(null)}
      onBlur={() => setAt(null)}
      onKeyDown={(event) => {
        if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
        event.preventDefault();
        setAt((old) => Math.min(n - 1, Math.max(0, (old ?? n - 1) + (event.key === "ArrowLeft" ? -1 : 1))));
      }}
    >
      {width > 0 ? (
        <svg width={width} height={height} aria-hidden="true">
          {[0, 0.5, 1].map((part) => (
            <g key={part}>
              <line x1={LEFT} x2={width} y1={box.y(part * top)} y2={box.y(part * top)} className={part === 0 ? "base" : "rule"} />
              <text x={LEFT - 8} y={box.y(part * top) + 4} textAnchor="end">{axis(part * top)}</text>
            </g>
          ))}
          {Array.from({ length: n }, (_, each) => each).filter((each) => (n - 1 - each) % every === 0 && each < n - 1).map((each) => (
            <text key={each} x={box.x(each) + step / 2} y={height - 5} textAnchor="middle">{when(each)}</text>
          ))}
          <text x={width} y={height - 5} textAnchor="end">now</text>
          {at === null ? null : <rect className="pointer" x={box.x(at)} width={step} y={TOP} height={height - TOP - BOTTOM} />}
          {draw(box)}
        </svg>
      ) : null}
      {at === null ? null : (
        <div className="plot-note" style={at < n / 2 ? { left: box.x(at + 1) + 8 } : { right: width - box.x(at) + 8 }}>
          <b className="num">{when(at)}</b>
          {note(at)}
        </div>
      )}
    </div>
  );
}
