/** Notices above every page: the manager is silent, or starts no jobs. */

import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { get } from "./api/client";
import type { ManagerView } from "./api/types";
import { duration, moment } from "./format";
import { useLost } from "./live";
import { useClock } from "./now";
import { Icon } from "./ui/icons";

export const useManager = () =>
  useQuery({ queryKey: ["manager"], queryFn: ({ signal }) => get<ManagerView>("/manager", {}, signal) });

/** A stream that reconnects within this time causes no notice. */
const PATIENCE_MS = 1500;

function Stale({ since }: { since: number }): ReactNode {
  const age = useClock() - since;
  if (age < PATIENCE_MS) return null;
  return (
    <p className="strip bad" role="alert">
      <Icon name="odd" size={15} />
      <span>
        <strong>The manager does not answer.</strong> Data from {moment(new Date(since).toISOString())},{" "}
        <span className="num" aria-hidden="true">{age < 60_000 ? `${Math.round(age / 1000)} s` : duration(age / 1000)} old</span>
      </span>
    </p>
  );
}

export function Strip(): ReactNode {
  const lost = useLost();
  const { data: manager } = useManager();
  if (lost !== null) return <Stale since={lost} />;
  if (!manager?.paused && !manager?.draining) return null;
  return (
    <p className="strip warn" role="status">
      <Icon name="held" size={15} />
      <span>
        <strong>{manager.draining ? "The manager is draining." : "The manager is paused."}</strong>{" "}
        {manager.draining ? "Nothing starts, and it stops when nothing runs." : "What runs goes on; nothing starts."}
      </span>
    </p>
  );
}
