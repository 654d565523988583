/** Repeats a what-if question when the plan changes: an answer is only as good as its plan. */

import { useEffect } from "react";
import { post } from "../../api/client";
import type { PlanView } from "../../api/types";
import { live } from "../../live";
import { paced } from "../../paced";
import { type Wish, jobOf } from "./asking";

const EVERY_MS = 2000;

/** `sent` null: there is no question. */
export function useAgain(sent: Wish | null, found: (plan: PlanView) => void): void {
  useEffect(() => {
    if (sent === null) return;
    let gone = false;
    const { wake, stop } = paced(EVERY_MS, async () => {
      const plan = await post<PlanView>("/plan", { job: jobOf(sent) });
      if (!gone) found(plan);
    });
    const deaf = live.hear(wake);
    return () => {
      gone = true;
      deaf();
      stop();
    };
  }, [sent, found]);
}
