/** The past states of a machine, as one band and as text. */

import type { ReactNode } from "react";
import type { NodeHistory as Span } from "../../api/types";
import { duration, moment } from "../../format";
import type { Tone } from "../../states";
import { Card } from "../../ui/parts";

const TONES: Record<string, Tone> = {
  busy: "run", draining: "warn", idle: "good", drained: "warn", suspected: "bad", closed: "idle", asleep: "idle", away: "bad", unseen: "idle",
  gone: "idle",
};
const toneOf = (state: string): Tone => TONES[state] ?? "idle";
const SHOWN = 12;

const seconds = (span: Span, now: number): number => Math.max(0, ((span.until ? Date.parse(span.until) : now) - Date.parse(span.at)) / 1000);

/** Spans in order of time, without empty ones; adjacent spans of the same state are merged. */
export function band(history: readonly Span[]): Span[] {
  const found: Span[] = [];
  for (const span of [...history].sort((a, b) => Date.parse(a.at) - Date.parse(b.at))) {
    const last = found.at(-1);
    if (last && last.state === span.state) found[found.length - 1] = { ...last, until: span.until };
    else found.push({ ...span });
  }
  return found;
}

/** A shorter gap between two periods of the same state is ignored. */
const PAUSE_S = 1;

/** Removes short pauses: the spans before and after a pause become one. */
export function calm(spans: readonly Span[], now: number): Span[] {
  return band(spans.filter((span, at) =>
    at === 0 || at === spans.length - 1 || seconds(span, now) >= PAUSE_S || spans[at - 1]?.state !== spans[at + 1]?.state));
}

export function History({ history, now }: { history: Span[]; now: number }): ReactNode {
  const all = band(history);
  const spans = calm(all, now);
  if (spans.length === 0) return <Card title="History"><p className="muted">Nothing is known yet.</p></Card>;
  const total = new Map<string, number>();
  for (const span of all) total.set(span.state, (total.get(span.state) ?? 0) + seconds(span, now));
  const from = Date.parse(spans[0]?.at ?? "");
  const part = (ms: number): string => `${(100 * ms) / Math.max(1, now - from)}%`;
  return (
    <Card title="History" aside={<span className="muted num">since {moment(spans[0]?.at)}</span>}>
      <div className="band timed" role="img" aria-label={[...total].map(([state, s]) => `${state} ${duration(s)}`).join(", ")}>
        {spans.map((span) => (
          <i key={span.at} className={`fill-${toneOf(span.state)}`} style={{ left: part(Date.parse(span.at) - from), width: part(1000 * seconds(span, now)) }}
            title={`${span.state}: ${moment(span.at)} to ${span.until ? moment(span.until) : "now"} (${duration(seconds(span, now))})`} />
        ))}
      </div>
      <ul className="legend">
        {[...total].map(([state, s]) => <li key={state}><i className={`fill-${toneOf(state)}`} />{state} <span className="muted num">{duration(s)}</span></li>)}
      </ul>
      <ol className="spans">
        {spans.slice(-SHOWN).reverse().map((span) => (
          <li key={span.at}>
            <i className={`fill-${toneOf(span.state)}`} />
            <b>{span.state}</b>
            <span className="num">{moment(span.at)} – {span.until ? moment(span.until) : "now"}</span>
            <span className="muted num">{duration(seconds(span, now))}</span>
          </li>
        ))}
      </ol>
      {spans.length > SHOWN ? <p className="muted">{spans.length - SHOWN} earlier ones are in the band only.</p> : null}
    </Card>
  );
}
