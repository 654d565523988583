/** Finds text in an output. The browser's own search sees only the rows in view. */

import { type ReactNode, useMemo, useState } from "react";
import { count } from "../../format";
import { plain } from "./ansi";
import type { Rows } from "./rows";

/** Enough to go through one by one; more are counted as "and more". */
const MOST = 5000;

/** The keys of the rows that hold a text, upper and lower case alike. */
export function finds(rows: Rows, text: string): number[] {
  const wanted = text.toLowerCase();
  const found: number[] = [];
  if (wanted === "") return found;
  for (const [at, row] of rows.rows.entries()) {
    if (found.length >= MOST) break;
    // Most rows fail the cheap test; colours within a word are looked past only then.
    const raw = row.text.toLowerCase();
    if (raw.includes(wanted) || (raw.includes("\u001b") && plain(raw).includes(wanted))) found.push(rows.base + at);
  }
  return found;
}

export interface Finding {
  hits: ReadonlySet<number>;
  hit: number | null;
  field: ReactNode;
}

/** `version`: changes whenever rows come. `sought`: a row was gone to. */
export function useFind(rows: Rows, version: number, sought: () => void): Finding {
  const [text, setText] = useState("");
  const [hit, setHit] = useState<number | null>(null);
  const found = useMemo(() => finds(rows, text), [rows, text, version]);
  const hits = useMemo(() => new Set(found), [found]);
  const at = hit === null ? -1 : found.indexOf(hit);
  const step = (by: 1 | -1): void => {
    if (found.length === 0) return;
    sought();
    const from = at === -1 ? (by === 1 ? -1 : 0) : at;
    setHit(found[(from + by + found.length) % found.length] ?? null);
  };
  const said = text === "" ? "" : found.length === 0 ? "none" : `${at + 1}/${count(found.length)}${found.length >= MOST ? "+" : ""}`;
  const field = (
    <span className="output-find" role="search">
      <span className="faint num" role="status">{said}</span>
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
