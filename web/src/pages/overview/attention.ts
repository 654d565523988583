/** Problems that need a person: waiting does not solve them. */

import type { Action, AttentionView, ManagerView, StatusView } from "../../api/types";
import { plural, size } from "../../format";
import { addressOf, named } from "../jobs/filter";
import type { IconName } from "../../ui/icons";
import type { Tone } from "../../states";

export interface Deed {
  label: string;
  run: { action: Action["action"]; select: string[] } | { manager: "resume" };
  ask?: string; //: the question to confirm first
}

export interface Need {
  key: string;
  tone: Tone;
  icon: IconName;
  title: string;
  text: string;
  to?: string;
  deed?: Deed;
}

/** Below this, the manager soon refuses new jobs. */
const DISK = 2 * 1024 ** 3;
const GROUPS = 5;

function ofManager({ paused, draining, safe_mode: bug }: StatusView, manager: ManagerView | undefined): Need[] {
  const needs: Need[] = [];
  if (bug)
    needs.push({
      key: "bug", tone: "bad", icon: "odd", title: "Nothing starts because of a bug", text: `What runs goes on. The bug: ${bug}`,
      deed: { label: "Resume", run: { manager: "resume" } },
    });
  if (draining)
    needs.push({
      key: "draining", tone: "warn", icon: "held", title: "The manager is draining", text: "Nothing starts, and it stops when nothing runs.",
      deed: { label: "Resume", run: { manager: "resume" } },
    });
  else if (paused)
    needs.push({
      key: "paused", tone: "warn", icon: "held", title: "The manager is paused", text: "What runs goes on; nothing starts.",
      deed: { label: "Resume", run: { manager: "resume" } },
    });
  if (manager && manager.disk_free_bytes < DISK)
    needs.push({
      key: "disk", tone: "bad", icon: "odd", title: "The disk is nearly full",
      text: `${size(manager.disk_free_bytes)} are free under ${manager.home}. New jobs are refused before it is full.`,
    });
  const away = manager?.runners.filter((runner) => !runner.connected) ?? [];
  if (away.length)
    needs.push({
      key: "away", tone: "odd", icon: "machines", title: away.length === 1 ? `The runner on ${away[0]?.host ?? ""} is away` : `${away.length} runners are away`,
      text: `${[...new Set(away.map((runner) => runner.host))].slice(0, 4).join(", ")}: they have not been heard of; their jobs may be lost.`,
      to: "/machines",
    });
  return needs;
}

/** Not visible in the counts: jobs that can never start, and reservations that would not get their granted resources. */
function ofPlaces(found: readonly AttentionView[]): Need[] {
  return found.map(({ kind, jobs, total, message }): Need => {
    const first = jobs[0] ?? 0;
    if (kind === "reservation")
      return {
        key: `reservation ${first}`, tone: "bad", icon: "odd", title: `Reservation ${first} is in danger`,
        text: `${message}: it would begin with less than it was granted.`, to: `/jobs/${first}`,
      };
    if (kind === "pool") return { key: `pool ${message}`, tone: "bad", icon: "odd", title: "A pool has no runners for jobs", text: sentence(message) };
    if (kind === "broken") return { key: `broken ${message}`, tone: "bad", icon: "odd", title: "A machine is broken", text: sentence(message) };
    const others = total > 1 ? ` The first: ${jobs.slice(0, NAMED).map((id) => `job ${id}`).join(", ")}.` : "";
    return {
      key: `never ${first}`, tone: "bad", icon: "odd", title: total === 1 ? `Job ${first} never fits` : `${plural(total, "job")} never fit`,
      text: `${sentence(message.replace(/^never fits: /, ""))}${others}`, to: `/jobs/${first}`,
    };
  });
}

const NAMED = 3;
const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

/** `mine`: counts of the jobs that the session may act on; there is no button for an action that would be refused. */
function ofJobs({ counts, groups }: StatusView, mine: StatusView, all: boolean): Need[] {
  const needs: Need[] = [];
  const n = (state: string): number => counts[state] ?? 0;
  const own = (state: string): number => mine.counts[state] ?? 0;
  const yours = (some: number, whole: number): string => (all || some === whole ? "" : some ? `, ${some} of them yours` : ", none of them yours");
  if (n("lost"))
    needs.push({
      key: "lost", tone: "odd", icon: "odd", title: `${plural(n("lost"), "job is", "jobs are")} lost`,
      text: `Nothing was heard of ${n("lost") === 1 ? "it" : "them"} for too long. What still runs comes back by itself.`, to: addressOf({ state: "lost" }),
      ...(all ? { deed: {
        label: "Confirm dead", run: { action: "confirm-dead", select: ["state=lost"] },
        ask: `Are you sure that ${n("lost") === 1 ? "this job" : `these ${n("lost")} jobs`} no longer run anywhere? They end, and may be tried again elsewhere: one that still runs would run twice.`,
      } } : {}),
    });
  const failed = Object.entries(groups).filter(([, states]) => (states["failed"] ?? 0) > 0)
    .sort((a, b) => (b[1]["failed"] ?? 0) - (a[1]["failed"] ?? 0));
  for (const [group, states] of failed.slice(0, GROUPS))
    needs.push({
      key: `failed ${group}`, tone: "bad", icon: "failed", title: group, text: `${plural(states["failed"] ?? 0, "job")} failed${yours(mine.groups[group]?.["failed"] ?? 0, states["failed"] ?? 0)}`,
      to: addressOf({ state: "failed", group }),
      ...(mine.groups[group]?.["failed"] ? { deed: { label: "Retry", run: { action: "retry", select: [`${named(group)},state=failed`] } } } : {}),
    });
  if (failed.length > GROUPS)
    needs.push({
      key: "failed more", tone: "bad", icon: "failed", title: `${failed.length - GROUPS} more groups`, text: "have failed jobs", to: addressOf({ state: "failed" }),
    });
  if (n("blocked"))
    needs.push({
      key: "blocked", tone: "bad", icon: "dependent", title: `${plural(n("blocked"), "job is", "jobs are")} blocked`,
      text: `What ${n("blocked") === 1 ? "it waits" : "they wait"} for cannot happen any more. Retry what failed, or remove ${n("blocked") === 1 ? "it" : "them"}.`, to: addressOf({ state: "blocked" }),
    });
  if (n("held"))
    needs.push({
      key: "held", tone: "warn", icon: "held", title: `${plural(n("held"), "job is", "jobs are")} held${yours(own("held"), n("held"))}`, text: n("held") === 1 ? "It waits until somebody releases it." : "They wait until somebody releases them.",
      to: addressOf({ state: "held" }), ...(own("held") ? { deed: { label: "Release", run: { action: "release", select: ["state=held"] } } } : {}),
    });
  return needs;
}

/** `mine`: counts of the jobs that the session may act on; null: all jobs. */
export const needsOf = (status: StatusView, manager: ManagerView | undefined, mine: StatusView | null = null): Need[] => [
  ...ofManager(status, manager), ...ofPlaces(manager?.attention ?? []), ...ofJobs(status, mine ?? status, mine === null),
];
