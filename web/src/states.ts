/** The states of a job, with their order and their looks. */

export type Tone = "run" | "good" | "bad" | "warn" | "odd" | "idle";

export const STATES = [
  "running", "starting", "finishing", "scheduled", "suspended", "lost", "ready", "delayed", "dependent", "held",
  "blocked", "failed", "cancelled", "complete",
] as const;
export type State = (typeof STATES)[number];

const TONES: Record<string, Tone> = {
  running: "run", starting: "run", finishing: "run", scheduled: "run", suspended: "odd", lost: "odd", ready: "idle",
  delayed: "warn", dependent: "idle", held: "warn", blocked: "bad", failed: "bad", cancelled: "idle", complete: "good",
  // Of elements and sessions of pipelines:
  waiting: "idle", ok: "good", skipped: "idle", terminated: "odd", paused: "warn", asking: "warn", ended: "idle",
};
export const tone = (state: string): Tone => TONES[state] ?? "idle";

export const ACTIVE: readonly string[] = ["running", "starting", "finishing", "scheduled", "suspended", "lost"];
export const WAITING: readonly string[] = ["ready", "delayed", "dependent", "held", "blocked"];
/** Jobs in these states do not start by themselves. */
export const STUCK: readonly string[] = ["held", "blocked"];
/** States in which the manager accepts a hold, and a retry. */
export const HOLDABLE: readonly string[] = ["ready", "delayed", "dependent", "blocked"];
export const RETRYABLE: readonly string[] = ["failed", "cancelled"];
export const ENDED: readonly string[] = ["complete", "failed", "cancelled"];

export const sum = (counts: Record<string, number>, states: readonly string[]): number =>
  states.reduce((total, state) => total + (counts[state] ?? 0), 0);

/** Work is left, but none of it starts until a user acts. */
export const stuck = (counts: Record<string, number>): boolean =>
  sum(counts, STUCK) > 0 && sum(counts, ACTIVE) + sum(counts, WAITING) === sum(counts, STUCK);
