/** Terminal colours in output: basic colours are shown, all other control sequences are dropped. */

/** Colours and weight as bits: 0-4 text (0: none, 1-8, bright 9-16), 5-9 background, then five flags. */
export type Style = number;

export interface Span {
  text: string;
  style: Style;
}

const ESCAPE = "\u001b";
const FLAGS = ["bold", "dim", "italic", "underline", "inverse"] as const;
const SEQUENCE =
  /\u001b(?:\[([0-?]*)[ -/]*([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|[ -/]*[0-~])?/g;
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/g;
/** Invisible characters that reverse the direction of text and could disguise it. */
const HIDING = /[\u0080-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

const flag = (at: number): number => 1 << (10 + at);
const text = (style: Style, colour: number): Style => (style & ~31) | colour;
const background = (style: Style, colour: number): Style => (style & ~(31 << 5)) | (colour << 5);

/** Maps one of 256 colours to the nearest basic one (1-16). */
function nearest(n: number): number {
  if (n < 16) return n + 1;
  if (n >= 232) return n < 244 ? 9 : 8;
  const cube = n - 16;
  const [red, green, blue] = [Math.floor(cube / 36) > 2, Math.floor(cube / 6) % 6 > 2, cube % 6 > 2];
  return 1 + Number(red) + 2 * Number(green) + 4 * Number(blue);
}

function obey(style: Style, words: string): Style {
  const codes = words.split(/[;:]/).map(Number);
  let now = style;
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    if (code === 0) now = 0;
    else if (code >= 1 && code <= 4) now |= flag(code - 1);
    else if (code === 7) now |= flag(4);
    else if (code === 22) now &= ~(flag(0) | flag(1));
    else if (code === 23) now &= ~flag(2);
    else if (code === 24) now &= ~flag(3);
    else if (code === 27) now &= ~flag(4);
    else if (code >= 30 && code <= 37) now = text(now, code - 29);
    else if (code >= 90 && code <= 97) now = text(now, code - 81);
    else if (code >= 40 && code <= 47) now = background(now, code - 39);
    else if (code >= 100 && code <= 107) now = background(now, code - 91);
    else if (code === 39) now = text(now, 0);
    else if (code === 49) now = background(now, 0);
    else if (code === 38 || code === 48) {
      const indexed = codes[at + 1] === 5;
      const [r = 0, g = 0, b = 0] = codes.slice(at + 2, at + 5);
      const colour = indexed
        ? nearest(Math.min(255, codes[at + 2] ?? 0))
        : 1 + Number(r > 127) + 2 * Number(g > 127) + 4 * Number(b > 127);
      now = code === 38 ? text(now, colour) : background(now, colour);
      at += indexed ? 2 : 4;
    }
  }
  return now;
}

const harmless = (raw: string): string =>
  raw.replace(CONTROL, (c) => (c === "\u007f" ? "\u2421" : String.fromCharCode(0x2400 + c.charCodeAt(0)))).replace(HIDING, "\ufffd");

/** Splits a line into pieces of one style each; `style` is the style at its start. */
export function spans(line: string, style: Style = 0): Span[] {
  const raw = line.endsWith("\r") ? line.slice(0, -1) : line;
  if (!raw.includes(ESCAPE)) return [{ text: harmless(raw), style }];
  const found: Span[] = [];
  let now = style;
  let from = 0;
  const keep = (piece: string): void => {
    if (piece) found.push({ text: harmless(piece), style: now });
  };
  for (const hit of raw.matchAll(SEQUENCE)) {
    keep(raw.slice(from, hit.index));
    from = hit.index + hit[0].length;
    if (hit[2] === "m") now = obey(now, hit[1] ?? "");
  }
  keep(raw.slice(from));
  return found;
}

/** The style at the end of a line. */
export function styleAfter(line: string, style: Style): Style {
  if (!line.includes(ESCAPE)) return style;
  let now = style;
  for (const hit of line.matchAll(SEQUENCE)) if (hit[2] === "m") now = obey(now, hit[1] ?? "");
  return now;
}

export const plain = (line: string): string => spans(line).map((each) => each.text).join("");

export function classes(style: Style): string {
  if (style === 0) return "";
  const names = [];
  const [fore, back] = [style & 31, (style >> 5) & 31];
  if (fore) names.push(`ansi-${fore}`);
  if (back) names.push(`ansi-on-${back}`);
  for (const [at, name] of FLAGS.entries()) if (style & flag(at)) names.push(`ansi-${name}`);
  return names.join(" ");
}
