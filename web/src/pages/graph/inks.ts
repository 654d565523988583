/** Colours of states of jobs and of elements, in the order in which they are stacked. */

import { tone } from "../../states";
import { ELEMENT_STATES } from "../pipeline/words";

export const ORDER: readonly string[] = [
  "complete", "ok", "skipped", "failed", "blocked", "cancelled", "terminated", "running", "starting", "finishing", "scheduled", "suspended",
  "lost", "delayed", "held", "ready", "waiting", "dependent",
];
const ELEMENTS: readonly string[] = ELEMENT_STATES;

export const inkOf = (state: string): string => (ELEMENTS.includes(state) ? `ink-${state}` : state === "cancelled" ? "ink-skipped" : `fill-${tone(state)}`);
