/** The data of the overview, refetched after every change. */

import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { get } from "../../api/client";
import type { StatusView } from "../../api/types";
import { type Minute, begun, filled } from "../../charts/minutes";

const MINUTES = 60;
const FEWEST = 15;

export const useStatus = () => useQuery({ queryKey: ["status"], queryFn: ({ signal }) => get<StatusView>("/status", {}, signal) });

export { useManager } from "../../strip";

/** The capacity of a host and how much of it is in use. */
export interface Load {
  host: string;
  connected: boolean;
  usable: boolean;
  cores: number;
  cores_in_use: number;
  mem_bytes: number | null;
  mem_in_use: number;
  jobs: number[];
}

export const useLoads = () =>
  useQuery({ queryKey: ["nodes"], queryFn: ({ signal }) => get<Load[]>("/nodes", {}, signal) });

/** The last hour by minutes, or less if nothing happened before; empty minutes until data arrives. */
export function useMinutes(now: number): readonly Minute[] {
  const { data } = useQuery({
    queryKey: ["history", MINUTES],
    queryFn: ({ signal }) => get<{ minutes: Minute[] }>("/history", { minutes: MINUTES }, signal),
    retry: false,
  });
  const minute = Math.floor(now / 60_000);
  return useMemo(() => begun(filled(data?.minutes ?? [], minute * 60_000, MINUTES), FEWEST), [data, minute]);
}
