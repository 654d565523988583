/** The theme: light, dark, or as the system is set. */

import { useSyncExternalStore } from "react";

export type Theme = "light" | "dark";
const KEY = "rota.theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");
const watchers = new Set<() => void>();

function chosen(): Theme | null {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : null;
  } catch {
    return null; // storage is disabled
  }
}

let current: Theme = chosen() ?? (system.matches ? "dark" : "light");

function apply(theme: Theme): void {
  current = theme;
  document.documentElement.dataset["theme"] = theme;
  for (const each of watchers) each();
}

export function start(): void {
  apply(current);
  system.addEventListener("change", () => {
    if (chosen() === null) apply(system.matches ? "dark" : "light");
  });
}

export function choose(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
  apply(theme);
}

export const useTheme = (): Theme =>
  useSyncExternalStore(
    (changed) => {
      watchers.add(changed);
      return () => watchers.delete(changed);
    },
    () => current,
  );

/** The value of a colour of `tokens.css`, for drawing on a canvas. */
export const colour = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
