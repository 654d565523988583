/** Actions on many jobs: the request, the message about its result, and undo where possible. */

import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { ApiError, patch, post } from "../../api/client";
import type { ActedView, Action } from "../../api/types";
import { plural } from "../../format";
import { useSay } from "../../ui/toasts";
import { ranges } from "./ids";

export type Verb = "retry" | "kill" | "hold" | "release" | "remove";

const DONE: Record<Verb, string> = {
  retry: "will run again", kill: "killed", hold: "held", release: "released", remove: "removed",
};
const BACK: Partial<Record<Verb, { verb: Verb; label: string }>> = {
  hold: { verb: "release", label: "Undo" },
  release: { verb: "hold", label: "Undo" },
  kill: { verb: "retry", label: "Retry them" },
};
const WHY_NOT: Record<Verb, string> = {
  retry: "only jobs that ended badly, or completed, can be retried",
  kill: "they have ended already",
  hold: "only jobs that have not started can be held",
  release: "none of them is held",
  remove: "they have not ended, or others wait for them",
};

/** One sentence: which jobs were changed, and which were not. */
export function outcome(verb: Verb, { changed, unchanged, kept = 0 }: ActedView): string {
  if (changed === 0) return `Nothing was changed: ${verb === "remove" && !kept ? "they are gone already" : WHY_NOT[verb]}`;
  if (kept > 0) return `${plural(changed, "job")} ${DONE[verb]}; ${plural(kept, "other")} kept`;
  const rest = unchanged > 0 ? `; ${plural(unchanged, "other")} stayed as ${unchanged === 1 ? "it is" : "they are"}` : "";
  return `${plural(changed, "job")} ${DONE[verb]}${rest}`;
}

const complaint = (error: unknown): string => {
  const text = error instanceof Error ? error.message : String(error);
  return error instanceof ApiError && error.hint ? `${text} — ${error.hint}` : text;
};

/** Which other jobs are removed along with them. */
export interface More { cascade?: boolean; waiting?: boolean }

export interface Acts {
  act: (verb: Verb, select: readonly string[], more?: More) => Promise<boolean>;
  /** What an action would change now. */
  check: (verb: Verb, select: readonly string[], more?: More) => Promise<ActedView>;
  prioritise: (select: readonly string[], priority: number, before: number | null) => Promise<boolean>;
  refuse: (error: unknown) => void;
}

export function useActs(): Acts {
  const say = useSay();
  const client = useQueryClient();
  const refuse = useCallback((error: unknown) => say(complaint(error), { bad: true }), [say]);

  const act = useCallback<Acts["act"]>(
    async (verb, select, { cascade = false, waiting = false } = {}) => {
      try {
        // Jobs are ticked here, not named: those that cannot be removed are kept without an error.
        const body: Action = { action: verb, select: [...select], cascade, waiting, lenient: true };
        const acted = await post<ActedView>("/jobs/actions", body);
        const back = BACK[verb];
        // Undo covers only jobs that were changed, and only if the answer names all of them.
        const whole = acted.changed > 0 && acted.jobs.length === acted.changed;
        say(outcome(verb, acted), {
          bad: acted.changed === 0,
          ...(back && whole ? { undo: () => void act(back.verb, ranges(acted.jobs)), label: back.label } : {}),
        });
        void client.invalidateQueries({ queryKey: ["jobs"] });
        void client.invalidateQueries({ queryKey: ["status"] });
        return true;
      } catch (error) {
        refuse(error);
        return false;
      }
    },
    [say, client, refuse],
  );

  const check = useCallback<Acts["check"]>(
    (verb, select, { cascade = false, waiting = false } = {}) =>
      post<ActedView>("/jobs/actions", { action: verb, select: [...select], cascade, waiting, lenient: true, check: true } satisfies Action),
    [],
  );

  const prioritise = useCallback<Acts["prioritise"]>(
    async (select, priority, before) => {
      try {
        const acted = await patch<ActedView>("/jobs", { select, change: { priority } });
        const whole = before !== null && before !== priority && acted.changed > 0 && acted.jobs.length === acted.changed;
        const capped = acted.warnings[0];
        say(
          capped ? `${plural(acted.changed, "job")} changed: ${capped}`
            : acted.changed ? `${plural(acted.changed, "job")} now ${acted.changed === 1 ? "has" : "have"} priority ${priority}`
            : "Nothing was changed: only jobs that are not running can be",
          {
            bad: acted.changed === 0,
            ...(whole ? { undo: () => void prioritise(ranges(acted.jobs), before, null) } : {}),
          },
        );
        void client.invalidateQueries({ queryKey: ["jobs"] });
        return true;
      } catch (error) {
        refuse(error);
        return false;
      }
    },
    [say, client, refuse],
  );

  return useMemo(() => ({ act, check, prioritise, refuse }), [act, check, prioritise, refuse]);
}
