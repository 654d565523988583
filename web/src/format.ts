/** Numbers, sizes, durations and times as readable text. */

import type { Call, JobView } from "./api/types";

export type Command = JobView["cmd"];

const number = new Intl.NumberFormat("en");
export const count = (value: number): string => number.format(value);

export function size(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined) return "–";
  const units = ["B", "K", "M", "G", "T", "P"];
  let value = bytes;
  let at = 0;
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${at === 0 || value >= 100 ? Math.round(value) : value.toFixed(1).replace(/\.0$/, "")}${units[at]}`;
}

export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  const s = Math.max(0, seconds);
  if (s < 0.9995) return `${Math.round(s * 1000)} ms`;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.round(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} m ${String(Math.floor(s % 60)).padStart(2, "0")} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} m`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function ago(moment: string | null | undefined, now: number): string {
  if (!moment) return "–";
  const seconds = (now - Date.parse(moment)) / 1000;
  if (seconds < -1) return `in ${duration(-seconds)}`;
  return seconds < 5 ? "just now" : `${duration(seconds)} ago`;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const day = new Intl.DateTimeFormat(undefined, {
  month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false,
});

export function moment(text: string | null | undefined): string {
  if (!text) return "–";
  const at = new Date(text);
  return new Date().toDateString() === at.toDateString() ? clock.format(at) : day.format(at);
}

/** Natural order of names: node2 before node10. */
export const byName = new Intl.Collator("en", { numeric: true }).compare;

export const plural = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;
export const percent = (part: number, whole: number): string => (whole > 0 ? `${Math.round((100 * part) / whole)} %` : "–");
export const command = (cmd: Command): string => (typeof cmd === "string" ? cmd : Array.isArray(cmd) ? cmd.join(" ") : call(cmd));

/** The call of a function, as the command line has it. */
export function call({ call: name, args = [], kwargs = {}, each = false }: Call): string {
  const named = Object.entries(kwargs).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  if (each) return `${name}(${["*each", ...named].join(", ")}) for each in ${JSON.stringify(args)}`;
  return `${name}(${[...args.map((value) => JSON.stringify(value)), ...named].join(", ")})`;
}

/** A command for a row, as `rota jobs` has it: a script by its name and arguments, other long text by its first line. */
export function brief(cmd: Command): string {
  if (typeof cmd === "string") return firstLine(cmd);
  if (!Array.isArray(cmd)) return call(cmd);
  const called = cmd.some((word) => word.includes("\n")) ? scriptCall(cmd) : [];
  return called.length ? `script ${called.join(" ")}` : cmd.map(firstLine).join(" ");
}
/** The first line that is neither blank nor a comment, and a mark if there are others. */
function firstLine(text: string): string {
  if (!text.includes("\n")) return text;
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  const first = lines.find((line) => !line.startsWith("#")) ?? lines[0] ?? "";
  return lines.length > 1 ? `${first} …` : first;
}
/** The name and arguments of a script that was submitted with its text; none: it is another command. */
function scriptCall(words: string[]): string[] {
  const at = words.indexOf("-c");
  const [text, name, ...rest] = at < 0 ? [] : words.slice(at + 1);
  if (text === undefined || name === undefined) return [];
  const file = rest.indexOf("/dev/fd/9");
  if (text.startsWith("text=$1; shift; exec ") && file >= 0) return [name, ...rest.slice(file + 1)];
  return text.startsWith("#!") || (at === 1 && words[0] === "/bin/sh") ? [name, ...rest] : [];
}
