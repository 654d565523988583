/** The words of elements and stages, in their order, and small sums of them. */

import type { PipelineBriefView, StageSumsView } from "../../api/types";

/** States of elements, in the order in which they are listed and drawn. */
export const ELEMENT_STATES = ["ok", "skipped", "failed", "blocked", "terminated", "running", "waiting"] as const;
export type ElementState = (typeof ELEMENT_STATES)[number];

/** The states of elements under the letters of `stretches` and `statuses`. */
const LETTERS: Record<string, string> = {
  a: "ahead", p: "pending", c: "checking", w: "waiting", r: "running", o: "ok", s: "skipped", f: "failed", b: "blocked", t: "terminated",
};
/** What a letter means, in words for people. */
const MEANINGS: Record<string, string> = {
  a: "not here yet", p: "waits for a dependency", c: "its condition is looked at", w: "waits for room", r: "running", o: "ok", s: "skipped",
  f: "failed", b: "blocked", t: "terminated",
};
export const wordOf = (letter: string): string => LETTERS[letter] ?? "ahead";
export const meaningOf = (letter: string): string => MEANINGS[letter] ?? "";

/** The sums of a stage by state; together they are all elements. */
export const bySums = (sums: StageSumsView): Record<ElementState, number> => ({
  ok: sums.processed, skipped: sums.skipped, failed: sums.failed, blocked: sums.blocked, terminated: sums.terminated,
  running: sums.running, waiting: sums.waiting,
});

export const settled = (sums: StageSumsView): number => sums.processed + sums.skipped + sums.failed + sums.blocked + sums.terminated;

export const nameOf = (file: string): string => file.slice(file.lastIndexOf("/") + 1) || file;

/** Running sessions first, the newest first among equals. */
export function inOrder(sessions: readonly PipelineBriefView[]): PipelineBriefView[] {
  return [...sessions].sort((a, b) => Number(a.state === "ended") - Number(b.state === "ended") || b.session - a.session);
}

export interface Run {
  letter: string;
  from: number;
  to: number; //: one past the last
}

/** Neighbouring stretches with the same letter as one. */
export function runs(stretches: string): Run[] {
  const found: Run[] = [];
  for (let at = 0; at < stretches.length; at += 1) {
    const letter = stretches.charAt(at);
    const last = found.at(-1);
    if (last?.letter === letter) last.to = at + 1;
    else found.push({ letter, from: at, to: at + 1 });
  }
  return found;
}

export interface Deed {
  action: "pause" | "resume" | "continue" | "quit" | "terminate" | "retry";
  name: string;
  done: string;
  icon: "held" | "running" | "right" | "close" | "failed" | "retry";
  question: string; //: empty: do not ask
}

const DEEDS: Record<Deed["action"], Deed> = {
  pause: { action: "pause", name: "Pause", done: "is paused", icon: "held", question: "" },
  resume: { action: "resume", name: "Resume", done: "goes on", icon: "running", question: "" },
  continue: { action: "continue", name: "Continue", done: "goes on without what failed", icon: "right", question: "" },
  quit: {
    action: "quit", name: "Quit", done: "ends when what was begun is done", icon: "close",
    question: "Nothing more begins up to the imperative stage. What has passed it goes through the later stages.",
  },
  terminate: {
    action: "terminate", name: "Terminate", done: "is being ended", icon: "failed",
    question: "Its jobs are ended now. Run the same file again, or retry, to go on from there.",
  },
  retry: { action: "retry", name: "Retry failed", done: "tries again", icon: "retry", question: "" },
};

/** What can be done with a session in this state. */
export function deeds(state: string, { failed, terminated, ending }: { failed: number; terminated: number; ending: string | null }): Deed[] {
  const found: Deed["action"][] = [];
  if (state === "asking") found.push("continue");
  if (state === "paused") found.push("resume");
  if (failed + terminated > 0) found.push("retry");
  if (state === "running") found.push("pause");
  if (state !== "ended" && ending === null) found.push("quit");
  if (state !== "ended" && ending !== "terminate") found.push("terminate");
  return found.map((action) => DEEDS[action]);
}
