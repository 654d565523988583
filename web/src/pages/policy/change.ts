/** Changes to records of the site. Each is made from a version; whoever was slower is told and sees the newer one. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { ApiError, patch } from "../../api/client";
import type { SiteChange, Version } from "../../api/types";
import { useSay } from "../../ui/toasts";

export interface Wanted {
  changes: SiteChange[];
  base: number;
  /** What to say when it is done. */
  said: string;
}

export interface Changing {
  change: (wanted: Wanted, done?: () => void) => void;
  busy: boolean;
  error: Error | null;
  /** Somebody else was quicker. */
  conflict: boolean;
}

/** A conflict is no mistake of the person: it is said, and what they look at is fetched again. */
const isConflict = (error: unknown): boolean => error instanceof ApiError && error.status === 409;

export function useSiteChange(): Changing {
  const client = useQueryClient();
  const say = useSay();
  const { mutate, isPending, error } = useMutation({
    mutationFn: ({ changes, base }: Wanted) => patch<Version>("/site", { changes, base }),
    onSettled: () => Promise.all(["site", "nodes", "quotas", "shares"].map((subject) => client.invalidateQueries({ queryKey: [subject] }))),
    onSuccess: (_version, { said }) => say(said),
    onError: (problem) => {
      if (isConflict(problem)) say("Somebody else changed the site meanwhile. You see the new state now; try again.", { bad: true });
    },
  });
  return {
    change: (wanted, done) => mutate(wanted, done ? { onSuccess: done } : {}),
    busy: isPending,
    error: isConflict(error) ? null : error,
    conflict: isConflict(error),
  };
}
