/** The time axis: a window that can be moved and zoomed, and its ticks. */

export interface Window {
  from: number; //: ms
  to: number; //: ms
}

export const HOUR = 3_600_000;
export const PRESETS: readonly (readonly [name: string, ms: number])[] = [
  ["1h", HOUR], ["6h", 6 * HOUR], ["1d", 24 * HOUR], ["1w", 168 * HOUR],
];
/** The default window, if the address names none. */
export const SPAN = "6h";
const LEAST = 20_000;
const MOST = 5 * 366 * 24 * HOUR;

/** How much of the window is before now when it follows the time. */
const BEFORE = 0.12;

export const around = (now: number, span: number): Window => ({ from: now - span * BEFORE, to: now + span * (1 - BEFORE) });

export const pan = ({ from, to }: Window, ms: number): Window => ({ from: from + ms, to: to + ms });

/** Zoom by a factor (below 1: closer); the moment `at` stays where it is. */
export function zoom({ from, to }: Window, factor: number, at: number): Window {
  const span = to - from;
  const wanted = Math.min(MOST, Math.max(LEAST, span * factor));
  const share = (at - from) / span;
  const start = at - wanted * share;
  return { from: start, to: start + wanted };
}

const S = 1000;
const M = 60 * S;
const D = 24 * HOUR;
const STEPS = [
  5 * S, 10 * S, 30 * S, M, 2 * M, 5 * M, 10 * M, 15 * M, 30 * M, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, D, 2 * D, 7 * D,
  14 * D, 30 * D, 90 * D, 365 * D,
];

export interface Tick {
  at: number;
  text: string;
  day: string; //: the day, only at its first tick
}

const seconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const minutes = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const days = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short" });

/** Ticks at round local times, at least `every` pixels apart. */
export function ticks({ from, to }: Window, width: number, every = 72): Tick[] {
  const wanted = ((to - from) / Math.max(1, width)) * every;
  const step = STEPS.find((each) => each >= wanted) ?? 365 * D;
  const offset = new Date(from).getTimezoneOffset() * M;
  const found: Tick[] = [];
  let before = "";
  for (let at = Math.ceil((from - offset) / step) * step + offset; at <= to; at += step) {
    const day = days.format(at);
    const text = step >= D ? day : step < M ? seconds.format(at) : minutes.format(at);
    found.push({ at, text, day: step < D && day !== before ? day : "" });
    before = day;
  }
  return found;
}

/** The range to fetch: the window with room on both sides, rounded so that small moves need no new request. */
export function asked({ from, to }: Window): Window {
  const unit = 2 ** Math.ceil(Math.log2(Math.max(LEAST, to - from)));
  return { from: Math.floor(from / unit - 0.5) * unit, to: Math.ceil(to / unit + 0.5) * unit };
}

const REACHES = [6 * HOUR, D, 3 * D, 7 * D, 30 * D, 92 * D, 366 * D];

/** The range of the slider: some of the future, and much more of the past than is shown. */
export function trackOf({ from, to }: Window, now: number): Window {
  const wanted = Math.max(6 * (to - from), 1.1 * (now - from));
  const back = REACHES.find((each) => each >= wanted) ?? wanted;
  return { from: now - back, to: Math.max(now + back / 6, to) };
}

/** The window of an address: a range, or a span that follows the time; null if it has neither. */
export function windowOf(query: URLSearchParams): Window | null {
  const from = Date.parse(query.get("from") ?? "");
  const to = Date.parse(query.get("to") ?? "");
  return Number.isFinite(from) && Number.isFinite(to) && to - from >= LEAST && to - from <= MOST ? { from, to } : null;
}

export const iso = (ms: number): string => new Date(Math.round(ms / 1000) * 1000).toISOString().replace(".000Z", "Z");
