/** Converts form input to records and back. Syntax errors are reported here, all others by the manager. */

/** Raised for input that cannot be parsed. */
export class Unclear extends Error {
  constructor(message: string, readonly hint: string) {
    super(message);
  }
}

const UNITS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

/** `1d 12h`, `90m`, `30s` → seconds; empty → null. */
export function seconds(label: string, text: string): number | null {
  const words = text.trim().toLowerCase();
  if (!words) return null;
  if (!/^(\d+(\.\d+)?\s*[smhdw]\s*)+$/.test(words)) throw new Unclear(`${label}: '${text}' is not a time`, "write it like 30m, 8h or 1d 12h");
  let total = 0;
  for (const [, number, unit] of words.matchAll(/(\d+(?:\.\d+)?)\s*([smhdw])/g)) total += Number(number) * (UNITS[unit ?? "s"] ?? 1);
  return total;
}

/** The shortest text that `seconds` parses to the same value. */
export function time(value: number | null | undefined): string {
  if (value === null || value === undefined) return "";
  let left = value;
  const words: string[] = [];
  for (const unit of ["d", "h", "m"]) {
    const whole = Math.floor(left / (UNITS[unit] ?? 1));
    if (whole > 0) words.push(`${whole}${unit}`);
    left -= whole * (UNITS[unit] ?? 1);
  }
  if (left > 0 || words.length === 0) words.push(`${left}s`);
  return words.join(" ");
}

export function whole(label: string, text: string): number | null {
  if (!text.trim()) return null;
  if (!/^\d{1,9}$/.test(text.trim())) throw new Unclear(`${label}: '${text}' is not a whole number`, "write it like 3");
  return Number(text);
}

/** A number from 0; nothing → null. The manager checks the upper bound. */
export function weight(label: string, text: string): number | null {
  if (!text.trim()) return null;
  if (!/^\d{1,9}(\.\d{1,9})?$/.test(text.trim())) throw new Unclear(`${label}: '${text}' is not a weight`, "write it like 1 or 0.5");
  return Number(text);
}

/** Lines such as `alice=0.5` → a record of shares. */
export function shares(text: string): Record<string, number> {
  const found: Record<string, number> = {};
  for (const [who, share] of pairs("Shares", text)) {
    const value = Number(share);
    if (!share.trim() || !(value >= 0 && value <= 1)) throw new Unclear(`Shares: '${who}=${share}' is not a share`, "write it like alice=0.5");
    found[who] = value;
  }
  return found;
}

/** NAME=VALUE pairs, separated by line breaks or commas. */
export function pairs(label: string, text: string): [string, string][] {
  return text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
    const at = line.indexOf("=");
    if (at < 1) throw new Unclear(`${label}: '${line}' is not NAME=VALUE`, "write one on each line");
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  });
}

const LISTS = ["user", "queue", "project", "group", "name", "uses"];

/** Conditions or fields of a rule. Patterns may be separated by commas; in a type a comma is part of the value. */
export function fields(label: string, text: string, { patterns }: { patterns: boolean }): Record<string, string | string[]> {
  const found: Record<string, string | string[]> = {};
  for (const [name, value] of pairs(label, text)) {
    const several = name === "type" ? [value] : patterns && LISTS.includes(name) ? value.split(",").map((word) => word.trim()) : null;
    if (several) found[name] = [...((found[name] as string[] | undefined) ?? []), ...several];
    else if (name in found) throw new Unclear(`${label}: '${name}' is given twice`, "give it once");
    else found[name] = value;
  }
  return found;
}

const word = (value: unknown): string => (typeof value === "boolean" ? (value ? "yes" : "no") : Array.isArray(value) ? value.join(",") : String(value));

/** The inverse: one NAME=VALUE each. */
export const listed = (values: Record<string, unknown>): string[] =>
  Object.entries(values).flatMap(([name, value]) =>
    name === "type" && Array.isArray(value) ? value.map((each) => `type=${String(each)}`) : [`${name}=${word(value)}`]);

/** A short list of the changed fields: `priority 5, walltime none`. */
export function news(before: Record<string, string>, now: Record<string, string>): string {
  const changed = Object.entries(now).filter(([name, value]) => value.trim() !== (before[name] ?? ""));
  return changed.map(([name, value]) => `${name} ${value.trim().split(/\s*\n\s*/).join(", ") || "none"}`).join(", ") || "as before";
}

/** A limit of a quota: a number, ALL or a fraction of it; empty means unlimited. */
export function limit(label: string, text: string): number | string {
  const words = text.trim();
  if (!words || words.toLowerCase() === "any") return -1;
  if (/^-?\d{1,15}(\.\d{1,9})?$/.test(words)) return Number(words);
  if (/all$/i.test(words)) return words.toUpperCase();
  throw new Unclear(`${label}: '${text}' is not a limit`, "write a number, ALL or a part such as 0.5*ALL");
}

export const limitText = (value: number | string | undefined): string => (value === undefined || value === -1 ? "" : String(value));
