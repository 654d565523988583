/** Colours of bars: the same value always has the same colour, on every page and in both themes. */

import type { Theme } from "../../theme";
import type { Bar } from "./model";

export const BY = ["group", "user", "queue", "state", "gang"] as const;
export type By = (typeof BY)[number];

/** Hues of a perceptually uniform colour space, so that text is readable on each of them. */
const HUES = [262, 55, 155, 340, 95, 300, 205, 22, 128, 320, 180, 5, 75, 235];

export function hash(word: string): number {
  let value = 2166136261;
  for (let at = 0; at < word.length; at += 1) value = Math.imul(value ^ word.charCodeAt(at), 16777619);
  return value >>> 0;
}

export function shade(word: string, theme: Theme): string {
  const value = hash(word);
  const hue = HUES[value % HUES.length] ?? 0;
  const light = (value >>> 8) % 2;
  return theme === "dark" ? `oklch(${0.72 + 0.07 * light} 0.12 ${hue})` : `oklch(${0.55 - 0.08 * light} 0.13 ${hue})`;
}

export const valueOf = (bar: Bar, by: By): string => bar.job[by] ?? "";

/** All values, the most frequent first. */
export function legend(bars: readonly Bar[], by: By): [value: string, n: number][] {
  const counts = new Map<string, number>();
  for (const bar of bars) counts.set(valueOf(bar, by), (counts.get(valueOf(bar, by)) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
}
