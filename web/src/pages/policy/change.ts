/** Changes to records of the site, each based on a version. A change based on an old one is refused, and the newer one is shown. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { ApiError, patch } from "../../api/client";
import type { SiteChange, Version } from "../../api/types";
import { useSay } from "../../ui/toasts";

export interface Wanted {
  changes: SiteChange[];
  base: number;
  /** The message after success. */
  said: string;
}

export interface Changing {
  change: (wanted: Wanted, done?: () => void) => void;
  busy: boolean;
  error: Error | null;
  /** Another change came first. */
  conflict: boolean;
}

/** A conflict is not a user error: report it and fetch the records again. */
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
