/** Searches a whole output, fetching parts that are not loaded yet. The browser's own search sees only the rows in view. */

import { type ReactNode, useEffect, useMemo, useState } from "react";
import { count, plural, size } from "../../format";
import type { Printed, StreamName } from "./printed";
import { FOUND_MOST, finds } from "./rows";

const TYPING_MS = 250;
/** How many bytes are searched, but not kept, beyond the rows that a page can hold. */
const BEYOND = 64 << 20;

/** The progress of a search. */
export interface Reach {
  from: number; //: the offset of the first searched byte
  next: number; //: the offset behind the last
  lines: number; //: how many of the searched rows are in the page
  forgot: boolean; //: earlier rows were dropped from the page
  beyond: number; //: matching rows before the rows in the page
  busy: boolean;
}

/** The number of matches, and how much was searched. */
export function found(at: number, hits: number, reach: Reach): string {
  const number = hits ? `${at < 0 ? "" : `${at + 1}/`}${count(hits)}${hits >= FOUND_MOST ? "+" : ""}` : "none";
  const earlier = reach.beyond ? `; ${count(reach.beyond)} more before what the page holds` : "";
  if (reach.busy) return `${number} so far, searching…`;
  if (reach.forgot) return `${number} in the last ${plural(reach.lines, "line")}`;
  if (reach.from > 0) return `${number} in the last ${size(reach.next - reach.from)} of ${size(reach.next)}${earlier}`;
  return `${number} in all ${size(reach.next)}${earlier}`;
}

export interface Finding {
  hits: ReadonlySet<number>;
  hit: number | null;
  field: ReactNode;
}

/** `version`: changes whenever rows arrive. `sought`: called after a jump to a row. `more`: loads an earlier part. */
export function useFind(printed: Printed, stream: StreamName, version: number, { sought, more }: {
  sought: () => void; more: () => Promise<void>;
}): Finding {
  const rows = printed.rows[stream];
  const [text, setText] = useState("");
  const [hit, setHit] = useState<number | null>(null);
  const [busy, setBusy] = useState(false);
  const [beyond, setBeyond] = useState<{ from: number; hits: number } | null>(null);
  const kept = printed.stage === "kept";
  useEffect(() => {
    setBeyond(null);
    if (text === "" || !kept || rows.first === 0) return;
    let over = false;
    const search = async (): Promise<void> => {
      setBusy(true);
      while (!over && rows.first > 0 && !rows.full) await more();
      let from = rows.first;
      for (let hits = 0; !over && from > 0 && rows.first - from < BEYOND; ) {
        const part = await printed.glance(stream, from, text);
        from = part.from;
        hits += part.hits;
        if (!over) setBeyond({ from, hits });
      }
    };
    const timer = setTimeout(() => void search().catch(() => undefined).finally(() => { if (!over) setBusy(false); }), TYPING_MS);
    return () => {
      over = true;
      clearTimeout(timer);
      setBusy(false);
    };
  }, [text, kept, rows, printed, stream, more]);

  const all = useMemo(() => finds(rows, text), [rows, text, version]);
  const hits = useMemo(() => new Set(all), [all]);
  const at = hit === null ? -1 : all.indexOf(hit);
  const step = (by: 1 | -1): void => {
    if (all.length === 0) return;
    sought();
    const from = at === -1 ? (by === 1 ? -1 : 0) : at;
    setHit(all[(from + by + all.length) % all.length] ?? null);
  };
  const reach = { from: beyond?.from ?? rows.first, next: rows.next, lines: rows.rows.length, forgot: rows.forgot, beyond: beyond?.hits ?? 0, busy };
  const field = (
    <span className="output-find" role="search" aria-label="Output">
      <span className="faint num" role="status">{text === "" ? "" : found(at, all.length, reach)}</span>
      <input
        type="search" placeholder="Find" aria-label="Find in the output; Enter goes on, Shift Enter back" value={text} maxLength={200}
        onChange={(event) => { setText(event.target.value); setHit(null); }}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          step(event.shiftKey ? -1 : 1);
        }}
      />
    </span>
  );
  return { hits, hit: at === -1 ? null : hit, field };
}
