/** The plan from the manager. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { get } from "../../api/client";
import type { GanttView } from "../../api/types";
import { type Window, asked, iso } from "./scale";

const LIMIT = 20_000;

export interface Picture {
  view: GanttView;
  skew: number; //: how far the manager's clock is ahead of this one, ms
}

export function useGantt(window: Window): { data: Picture | undefined; error: Error | null } {
  const { from, to } = asked(window);
  const { data, error } = useQuery({
    queryKey: ["timeline", from, to],
    queryFn: async ({ signal }): Promise<Picture> => {
      const sent = Date.now();
      const view = await get<GanttView>("/gantt", { from: iso(from), to: iso(to), limit: LIMIT }, signal);
      const got = Date.now();
      // The server's time must lie between request and answer, however slow; the excess is the clock difference.
      const then = Date.parse(view.now);
      return { view, skew: Math.min(0, then - sent) + Math.max(0, then - got) };
    },
    placeholderData: keepPreviousData,
    structuralSharing: false, // comparing ten thousand jobs takes longer than laying them out
    gcTime: 30_000,
  });
  return { data, error };
}
