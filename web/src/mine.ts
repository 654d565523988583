/** How many jobs there are that this session may act on. */

import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { get } from "./api/client";
import type { StatusView } from "./api/types";
import { useOnly } from "./session";

/** Disabled if the session may act on all jobs: then `status` itself has the numbers. */
export function useMine(): UseQueryResult<StatusView> {
  const only = useOnly();
  return useQuery({
    queryKey: ["status", "mine", only],
    queryFn: ({ signal }) => get<StatusView>("/status", { select: [`user=${only ?? ""}`] }, signal),
    enabled: only !== null,
  });
}
