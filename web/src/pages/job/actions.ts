/** The actions that a job's state allows, and how to undo them. */

import type { Action } from "../../api/types";
import { ENDED, WAITING } from "../../states";
import type { IconName } from "../../ui/icons";

export interface Deed {
  action: Action["action"];
  name: string;
  done: string;
  icon: IconName;
  question: string; //: empty: do not ask
  undo: Action["action"] | null;
}

const ACTIVE: readonly string[] = ["scheduled", "starting", "running", "suspended", "finishing"];

/** `admin`: without it, actions of administrators are not offered. */
export function deeds(state: string, replaced = false, admin = true): Deed[] {
  const found: Deed[] = [];
  if ((state === "failed" || state === "cancelled") && !replaced) {
    found.push({ action: "retry", name: "Retry", done: "runs again", icon: "retry", question: "", undo: null });
  }
  if (state === "held") {
    found.push({ action: "release", name: "Release", done: "is released", icon: "running", question: "", undo: "hold" });
  } else if (WAITING.includes(state)) {
    found.push({ action: "hold", name: "Hold", done: "is held", icon: "held", question: "", undo: "release" });
  }
  if (state === "lost" && admin) {
    found.push({
      action: "confirm-dead", name: "Confirm dead", done: "is taken for dead", icon: "odd", undo: null,
      question: "Its runner is silent. If its processes may still be alive, a retry could run it twice at once. Are they surely gone?",
    });
  }
  if (ACTIVE.includes(state) || state === "lost") {
    found.push({
      action: "kill", name: "Kill", done: "is being killed", icon: "failed", undo: null,
      question: "Its processes are ended, and what they have done so far may be lost.",
    });
  } else if (WAITING.includes(state)) {
    found.push({ action: "kill", name: "Cancel", done: "is cancelled", icon: "failed", question: "", undo: "retry" });
  }
  if (ENDED.includes(state)) {
    found.push({
      action: "remove", name: "Remove", done: "is removed", icon: "trash", undo: null,
      question: "The job, its story and its output are forgotten. This cannot be undone.",
    });
  }
  return found;
}

/** Only waiting jobs may be changed. */
export const changeable = (state: string): boolean => WAITING.includes(state);
