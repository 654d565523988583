/** A machine as the API describes it, and its labels. */

import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { get } from "../../api/client";
import type { NodeDetailView, NodeView } from "../../api/types";
import { byName } from "../../format";
import type { Tone } from "../../states";
import type { IconName } from "../../ui/icons";

export type Machine = NodeView;

export interface Mark {
  name: string;
  tone: Tone;
  icon: IconName;
  about: string;
}

const SLEEP: readonly string[] = ["falling asleep", "asleep", "waking"];

/** The most important fact about a machine: what is wrong and, if given, why; otherwise how busy it is. */
export function mark(node: Machine): Mark {
  const found = seen(node);
  return node.why ? { ...found, about: node.why } : found;
}

/** Conditions other than automated, for which no job is placed. */
const CONDITIONS: Record<string, Mark> = {
  broken: { name: "broken", tone: "bad", icon: "failed", about: "It gets no jobs until it is repaired" },
  manual: { name: "manual", tone: "warn", icon: "edit", about: "Used by hand; it gets no jobs" },
  removed: { name: "removed", tone: "idle", icon: "trash", about: "No longer in service" },
};

function seen(node: Machine): Mark {
  const apart = CONDITIONS[node.condition];
  if (apart) return node.manual_user ? { ...apart, about: `Reserved by ${node.manual_user}` } : apart;
  if (node.state === "dead") return { name: "dead", tone: "bad", icon: "failed", about: "It does not come back by itself" };
  if (node.state === "absent") return { name: "absent", tone: "idle", icon: "cancelled", about: "Known, but its runner is not there or it is not to be used" };
  if (node.state === "suspected") return { name: "suspected", tone: "warn", icon: "odd", about: "It has been silent for a while" };
  if (SLEEP.includes(node.state)) return { name: node.state, tone: "idle", icon: "held", about: "It was put to sleep; a planned job wakes it" };
  if (!node.connected) return { name: "no runner", tone: "idle", icon: "odd", about: "Its runner is not connected" };
  if (node.drain && node.jobs.length > 0) return { name: "draining", tone: "warn", icon: "held", about: "Starts no new jobs" };
  if (node.drain) return { name: "drained", tone: "warn", icon: "held", about: "Starts no new jobs, and none runs" };
  if (node.closed) return { name: "closed", tone: "warn", icon: "held", about: "Outside its hours, or no longer available" };
  if (!node.usable) return { name: "not usable", tone: "warn", icon: "odd", about: "No job can start there now" };
  if (node.usage === "waiting" || node.usage === "installing")
    return { name: node.usage, tone: "odd", icon: "retry", about: node.usage === "waiting" ? "Asked to provision itself for a job" : "It is provisioned for a job" };
  if (node.cores > 0 && node.cores_in_use >= node.cores) return { name: "full", tone: "run", icon: "running", about: "Every core is in use" };
  if (node.jobs.length > 0 || node.cores_in_use > 0) return { name: "busy", tone: "run", icon: "running", about: "Jobs run there" };
  return { name: "idle", tone: "good", icon: "complete", about: "Ready for jobs" };
}

/** The states behind each choice of the filter. */
export const KINDS: Record<string, readonly string[]> = {
  working: ["busy", "full", "waiting", "installing"],
  idle: ["idle"],
  drained: ["draining", "drained"],
  asleep: SLEEP,
  manual: ["manual"],
  broken: ["broken", "removed"],
  gone: ["no runner", "absent", "suspected", "dead", "closed", "not usable"],
};

const share = (part: number, whole: number | null): number => (whole ? part / whole : 0);
const ORDERS: Record<string, (a: Machine, b: Machine) => number> = {
  name: () => 0,
  cores: (a, b) => share(b.cores_in_use, b.cores) - share(a.cores_in_use, a.cores),
  memory: (a, b) => share(b.mem_in_use, b.mem_bytes) - share(a.mem_in_use, a.mem_bytes),
  jobs: (a, b) => b.jobs.length - a.jobs.length,
  size: (a, b) => b.cores - a.cores,
};

/** Every term must be part of the name, or a property as name=value. */
export function chosen(nodes: readonly Machine[], words: string, kind: string, order: string): Machine[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const kinds = KINDS[kind];
  const found = nodes.filter((node) => {
    if (kinds && !kinds.includes(mark(node).name)) return false;
    return wanted.every((word) => {
      const [name, value] = word.split("=", 2);
      if (value === undefined) return node.host.toLowerCase().includes(word);
      return Object.entries(node.properties).some(([key, its]) => key.toLowerCase() === name && String(its).toLowerCase() === value);
    });
  });
  const compare = ORDERS[order] ?? (() => 0);
  return found.sort((a, b) => compare(a, b) || byName(a.host, b.host));
}

export function useMachines(): UseQueryResult<Machine[]> {
  return useQuery({ queryKey: ["nodes"], queryFn: ({ signal }) => get<Machine[]>("/nodes", {}, signal) });
}

export function useMachine(host: string): UseQueryResult<NodeDetailView> {
  return useQuery({
    queryKey: ["nodes", host],
    queryFn: ({ signal }) => get<NodeDetailView>(`/nodes/${encodeURIComponent(host)}`, {}, signal),
  });
}
