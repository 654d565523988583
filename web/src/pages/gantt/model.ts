/** The plan as it is drawn: hosts with their cores as lines, jobs as pieces of one host. */

import type { GanttAttempt, GanttHost, GanttJob, GanttView, PlanView } from "../../api/types";
import { ACTIVE } from "../../states";

export type Span = readonly [first: number, last: number];
/** `merged`: more attempts than can be drawn; `state`: a state of a host. */
export type Kind = "running" | "planned" | "reserved" | "ghost" | "ended" | "merged" | "state";

export interface Bar {
  job: GanttJob;
  start: number; //: ms
  end: number; //: ms
  kind: Kind;
  besteffort: boolean;
  text: string | null; //: the text that the filter searches, built on first use
  attempt?: number; //: its number, if it has ended
  exact?: boolean; //: are these known to be its cores?
  share?: number; //: of merged attempts: how much of the host was in use
  about?: string; //: of merged attempts and host states: the description
}

/** The part of a bar on one host: ranges of cores by position, [first, last]. Empty: it has no cores of its own. */
export interface Piece {
  bar: Bar;
  cores: readonly Span[];
}

export interface Row {
  host: GanttHost;
  cores: number;
  pieces: Piece[]; //: by start
  down: string; //: why nothing can start here; empty: it can
  until: number; //: ms: when the host goes away
  closed: readonly Span[]; //: ms: spans in which it may not be used
  states: Bar[]; //: its past states
  merged: Bar[];
}

export interface Plan {
  now: number;
  past: boolean; //: is there data about the time before now?
  rows: Row[];
  bars: Bar[];
}

const FAR = 8.64e15;

/** "1-8,17" as spans of numbers. */
export function spans(text: string | null): Span[] {
  if (!text) return [];
  return text.split(",").map((word): Span => {
    const [first, last] = word.split("-");
    return [Number(first), Number(last ?? first)];
  });
}

export function unusable(host: GanttHost): string {
  if (host.state === "gone") return "gone";
  if (host.condition && host.condition !== "automated") return host.condition;
  if (host.drain) return "drained";
  if (host.state !== "alive") return host.state;
  if (!host.connected) return "no runner";
  return host.usable ? "" : "not to be used";
}

export function kindOf(job: GanttJob): Kind {
  if (ACTIVE.includes(job.state)) return "running";
  return job.reserved ? "reserved" : "planned";
}

function barOf(job: GanttJob): Bar {
  return {
    job,
    start: Date.parse(job.start),
    end: job.end === null ? FAR : Date.parse(job.end),
    kind: kindOf(job),
    besteffort: job.type.includes("besteffort"),
    text: null,
  };
}

/** Does a bar have these words (in lower case)? */
export function has(bar: Bar, words: string): boolean {
  const { id, name, user, project, queue, group, state, type, gang = "" } = bar.job;
  bar.text ??= [`#${id}`, name, user, project, queue, group, state, gang, ...type].join(" ").toLowerCase();
  return bar.text.includes(words);
}

const NOBODY: GanttJob = {
  id: 0, name: "", user: "", project: "", queue: "", group: "", state: "", type: [], start: "", end: null, resources: null, host: null,
  reserved: false,
};

function attemptBar(its: GanttAttempt): Bar {
  return {
    job: { ...its, reserved: false }, start: Date.parse(its.start), end: Date.parse(its.end), kind: "ended",
    besteffort: its.type.includes("besteffort"), text: null, attempt: its.attempt, exact: its.exact,
  };
}

const spanBar = (kind: "merged" | "state", its: { host: string; start: string; end: string }, more: Partial<Bar>, state = ""): Bar => ({
  job: { ...NOBODY, host: its.host, start: its.start, end: its.end, state }, start: Date.parse(its.start), end: Date.parse(its.end), kind,
  besteffort: false, text: null, ...more,
});

/** Labels of the host states. */
export const DID: Record<string, string> = {
  drained: "drained", draining: "drained; jobs ran on", suspected: "suspected", closed: "closed", asleep: "asleep", away: "down: no runner answered",
  unseen: "not known: no manager was running", gone: "not one of the hosts", unknown: "not known yet",
  manual: "in use by hand", broken: "broken", removed: "no longer in service",
};

/** Places the past on its rows. */
function addPast(view: GanttView, rows: Map<string, Row>): Bar[] {
  const { past } = view;
  if (!past) return [];
  for (const [host, lines] of Object.entries(past.lines)) {
    const row = rows.get(host);
    if (row) row.cores = Math.max(row.cores, lines);
  }
  for (const its of past.states) rows.get(its.host)?.states.push(spanBar("state", its, { about: DID[its.state] ?? its.state }, its.state));
  for (const its of past.merged) {
    const row = rows.get(its.host);
    row?.merged.push(spanBar("merged", its, {
      share: Math.min(1, its.cores / Math.max(1, row.cores)),
      about: `${Math.round(its.cores * 10) / 10} of ${row.cores} cores in use; ${its.attempts} attempts ended${its.failed ? `, ${its.failed} failed` : ""}`,
    }, its.failed ? "failed" : "complete"));
  }
  return past.attempts.map((its) => {
    const bar = attemptBar(its);
    for (const [host, lines] of its.lines) rows.get(host)?.pieces.push({ bar, cores: spans(lines) });
    if (its.lines.length === 0) rows.get(its.host)?.pieces.push({ bar, cores: [] });
    return bar;
  });
}

interface Place {
  first: number;
  last: number;
  row: Row;
  at: number; //: number of cores of the host before these
}

/** Maps ids of resources to cores of hosts. */
class Places {
  private readonly places: Place[] = [];

  constructor(rows: readonly Row[]) {
    for (const row of rows) {
      for (const [first, last] of spans(row.host.resources)) {
        this.places.push({ first, last, row, at: row.cores });
        row.cores += last - first + 1;
      }
    }
    this.places.sort((a, b) => a.first - b.first);
  }

  of(wanted: readonly Span[]): Map<Row, Span[]> {
    const found = new Map<Row, Span[]>();
    for (const [first, last] of wanted) {
      for (let at = this.firstFrom(first); at < this.places.length; at += 1) {
        const place = this.places[at];
        if (!place || place.first > last) break;
        const low = place.at + Math.max(first, place.first) - place.first;
        const high = place.at + Math.min(last, place.last) - place.first;
        const there = found.get(place.row);
        const before = there?.at(-1);
        if (there && before && before[1] + 1 === low) there[there.length - 1] = [before[0], high];
        else if (there) there.push([low, high]);
        else found.set(place.row, [[low, high]]);
      }
    }
    return found;
  }

  /** The first place that ends at this id or after it. */
  private firstFrom(id: number): number {
    let low = 0;
    let high = this.places.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.places[middle]?.last ?? Infinity) < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export function planOf(view: GanttView, ghost: Bar | null = null): Plan {
  const rows = view.hosts.map((host): Row => ({
    host, cores: 0, pieces: [], states: [], merged: [], down: unusable(host),
    until: host.available_until === null ? FAR : Date.parse(host.available_until),
    closed: (view.closed[host.hours ?? ""] ?? []).map(([from, to]): Span => [Date.parse(from), Date.parse(to)]),
  }));
  const map = new Places(rows);
  const named = new Map(rows.map((row) => [row.host.host, row]));
  const over = addPast(view, named);
  const bars = [...over, ...view.jobs.map(barOf)];
  for (const bar of bars.slice(over.length).concat(ghost ?? [])) {
    const where = map.of(spans(bar.job.resources));
    for (const [row, cores] of where) row.pieces.push({ bar, cores });
    if (where.size === 0 && bar.job.host) named.get(bar.job.host)?.pieces.push({ bar, cores: [] });
  }
  if (over.length) for (const row of rows) row.pieces.sort((a, b) => a.bar.start - b.bar.start);
  return { now: Date.parse(view.now), past: view.past !== null, rows, bars };
}

/** The bar of a what-if job. */
export function ghostOf(plan: PlanView | null): Bar | null {
  if (!plan?.start) return null;
  const job: GanttJob = {
    id: 0, name: "your job", user: "", project: "", queue: "", group: "", state: "ready", type: [], start: plan.start,
    end: plan.end, resources: plan.resources, host: plan.hosts[0] ?? null, reserved: false,
  };
  return { ...barOf(job), kind: "ghost" };
}

/** How much of a host is in use at a given time. */
export function inUse(row: Row, at: number): number {
  let used = 0;
  for (const { bar, cores } of row.pieces) {
    if (bar.start > at) break;
    if (bar.kind === "running" && bar.end > at) for (const [first, last] of cores) used += last - first + 1;
  }
  return Math.min(used, row.cores);
}

/** Besteffort jobs that the what-if job would preempt: they run where and when it would. */
export function ended(plan: Plan, ghost: Bar): number[] {
  const found = new Set<number>();
  for (const { pieces } of plan.rows) {
    const wanted = pieces.find((piece) => piece.bar === ghost)?.cores ?? [];
    for (const { bar, cores } of pieces) {
      if (bar === ghost || bar.kind !== "running" || !bar.besteffort || bar.end <= ghost.start || bar.start >= ghost.end) continue;
      if (cores.some(([first, last]) => wanted.some(([low, high]) => first <= high && last >= low))) found.add(bar.job.id);
    }
  }
  return [...found];
}
