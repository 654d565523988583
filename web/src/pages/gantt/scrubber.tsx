/** Moves the window through time, far into the past: a slider for pointer and keyboard, and a field for an exact time. */

import type { ReactNode } from "react";
import { type Window, ticks, trackOf } from "./scale";

const STEPS = 400;
const days = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

/** The format of a `datetime-local` field. */
const local = (ms: number): string => new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);

export function Scrubber({ view, now, move }: { view: Window; now: number; move: (view: Window) => void }): ReactNode {
  const track = trackOf(view, now);
  const length = track.to - track.from;
  const middle = (view.from + view.to) / 2;
  const half = (view.to - view.from) / 2;
  const share = (at: number): string => `${(100 * (at - track.from)) / length}%`;
  const go = (at: number): void => {
    if (Number.isFinite(at)) move({ from: at - half, to: at + half });
  };
  return (
    <div className="gantt-scrubber">
      <div className="track">
        <i className="shown" style={{ left: share(view.from), width: `${(100 * 2 * half) / length}%` }} />
        <i className="now" style={{ left: share(now) }} />
        {ticks(track, 450, 115).map(({ at, text, day }) => <small key={at} style={{ left: share(at) }}>{day || text}</small>)}
        <input
          type="range" aria-label="Time shown" min={track.from} max={track.to} step={length / STEPS} value={middle}
          aria-valuetext={`${days.format(view.from)} to ${days.format(view.to)}`} onChange={(event) => go(Number(event.target.value))}
        />
      </div>
      <label>
        Jump to{" "}
        <input
          type="datetime-local" value={local(middle)} max={local(now + length)}
          onChange={(event) => go(Date.parse(event.target.value))}
        />
      </label>
    </div>
  );
}
