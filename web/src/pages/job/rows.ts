/**
 * One stream of one attempt as rows to show. Pieces come with the offsets of their bytes, so that kept and
 * live output join without loss or repetition.
 */

import { type Style, plain, styleAfter } from "./ansi";

export interface Row {
  text: string;
  style: Style; //: the style at the end of the previous rows
  joined: boolean; //: the same line goes on in the next row
  gap: number; //: instead of text: how many bytes are missing here
}

/** Longer lines are shown as several rows: a page cannot lay out a line of a megabyte. */
const LONGEST = 2000;
/** The most rows in the page; beyond it the earliest are dropped. */
export const MOST = 200_000;

export class Rows {
  rows: Row[] = [];
  first = 0; //: the offset of the first byte that is here
  next = 0; //: the offset behind the last
  base = 0; //: how many rows were dropped at the start, so that a row keeps its key
  widest = 0;
  forgot = false; //: rows were dropped because there were too many
  private open = false; //: the last row is not ended by a newline
  private begun = false;

  constructor(private readonly most = MOST) {}

  /** Take a piece from `offset` up to `next`; bytes already here are skipped. */
  append(text: string, offset: number, next: number): void {
    if (!this.begun) {
      this.begun = true;
      this.first = offset;
      this.next = offset;
    }
    if (next <= this.next) return;
    let fresh = text;
    if (offset < this.next) fresh = new TextDecoder().decode(new TextEncoder().encode(text).subarray(this.next - offset));
    else if (offset > this.next) {
      this.rows.push({ text: "", style: 0, joined: false, gap: offset - this.next });
      this.open = false;
    }
    this.next = next;
    const last = this.open ? this.rows.pop() : undefined;
    const style = last?.style ?? this.styleBehind();
    this.add(this.rows, (last?.text ?? "") + fresh, style);
    this.open = !fresh.endsWith("\n");
    if (this.rows.length > this.most) this.forget();
  }

  /** Take the piece just before the first byte here. Returns the number of added rows. */
  prepend(text: string, offset: number): number {
    const before: Row[] = [];
    let head = text;
    const first = this.rows[0];
    const whole = text.endsWith("\n") || first === undefined || first.gap > 0;
    if (!whole) {
      head += first.text;
      this.rows.shift();
    }
    this.add(before, head, 0);
    const last = before.at(-1);
    if (!whole && last && first) last.joined = first.joined;
    this.rows = before.concat(this.rows);
    this.first = offset;
    const added = before.length - (whole ? 0 : 1);
    this.base -= added;
    return added;
  }

  get full(): boolean {
    return this.rows.length >= this.most;
  }

  /** All rows as text without colours. */
  text(): string {
    const parts: string[] = [];
    for (const [at, row] of this.rows.entries()) {
      parts.push(row.gap ? `[${row.gap} bytes are missing here]` : plain(row.text));
      if (!row.joined && (at < this.rows.length - 1 || !this.open)) parts.push("\n");
    }
    return parts.join("");
  }

  private styleBehind(): Style {
    const last = this.rows.at(-1);
    return last ? styleAfter(last.text, last.style) : 0;
  }

  /** Cut text into rows. A newline ends a row; after a carriage return the following text overwrites the line. */
  private add(rows: Row[], text: string, style: Style): void {
    const lines = text.split("\n");
    if (lines.at(-1) === "") lines.pop();
    let now = style;
    for (const line of lines) {
      const from = line.length > 1 ? line.lastIndexOf("\r", line.length - 2) + 1 : 0;
      let rest = from > 0 ? line.slice(from) : line;
      do {
        let cut = Math.min(rest.length, LONGEST);
        // Never split a surrogate pair.
        if (cut < rest.length && (rest.charCodeAt(cut - 1) & 0xfc00) === 0xd800) cut -= 1;
        const row = { text: rest.slice(0, cut), style: now, joined: cut < rest.length, gap: 0 };
        rows.push(row);
        this.widest = Math.max(this.widest, cut);
        now = styleAfter(row.text, now);
        rest = rest.slice(cut);
      } while (rest);
    }
  }

  private forget(): void {
    const many = this.rows.length - Math.floor(this.most * 0.9);
    this.rows.splice(0, many);
    this.base += many;
    this.forgot = true;
  }
}

/** The most matches to step through one by one. */
export const FOUND_MOST = 5000;

/** The keys of the rows that contain a text, ignoring case. */
export function finds(rows: Rows, text: string): number[] {
  const wanted = text.toLowerCase();
  const found: number[] = [];
  if (wanted === "") return found;
  for (const [at, row] of rows.rows.entries()) {
    if (found.length >= FOUND_MOST) break;
    // Most rows fail the cheap test; only the others are searched again without their colours.
    const raw = row.text.toLowerCase();
    if (raw.includes(wanted) || (raw.includes("\u001b") && plain(raw).includes(wanted))) found.push(rows.base + at);
  }
  return found;
}
