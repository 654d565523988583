/** The event stream: one connection for the whole page. Its events make queries refetch. */

import type { QueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { address, get } from "./api/client";
import { paced } from "./paced";

export interface Change {
  at: string;
  counts: Record<string, number>;
  groups: Record<string, Record<string, number>>;
  jobs: [id: number, state: string, attempt: number][];
  many: boolean;
  what: string[];
}

export type Link = "live" | "connecting" | "lost";

type Listener = (change: Change | null) => void;

class Live {
  private source: EventSource | null = null;
  private readonly listeners = new Set<Listener>();
  private readonly watchers = new Set<() => void>();
  private state: Link = "connecting";
  /** The time up to which the page is up to date; null: it is up to date now. */
  private until: number | null = null;
  private retry: ReturnType<typeof setTimeout> | undefined;

  open(): void {
    this.source?.close();
    const source = new EventSource(address("/events"));
    this.source = source;
    source.onopen = () => this.become("live");
    source.onerror = () => {
      this.become("lost");
      // A browser stops reconnecting after an answer that is no stream, such as 503 while the manager restarts.
      if (source.readyState === EventSource.CLOSED) {
        clearTimeout(this.retry);
        this.retry = setTimeout(() => this.open(), 2000);
        void get("/session").catch(() => undefined); // the stream's error does not say whether the session is over
      }
    };
    source.addEventListener("change", (event) => this.tell(JSON.parse((event as MessageEvent<string>).data) as Change));
    source.addEventListener("reset", () => this.tell(null));
  }

  close(): void {
    clearTimeout(this.retry);
    this.source?.close();
    this.source = null;
  }

  /** Subscribe to all changes; null: some may have been missed. */
  hear(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  watch = (changed: () => void): (() => void) => {
    this.watchers.add(changed);
    return () => this.watchers.delete(changed);
  };

  now = (): Link => this.state;
  lost = (): number | null => this.until;

  private become(state: Link): void {
    if (state === this.state) return;
    this.state = state;
    this.until = state === "lost" ? Date.now() : null;
    for (const each of this.watchers) each();
  }

  private tell(change: Change | null): void {
    for (const each of this.listeners) each(change);
  }
}

export const live = new Live();
export const useLink = (): Link => useSyncExternalStore(live.watch, live.now);
/** When the connection was lost; null if it is not. */
export const useLost = (): number | null => useSyncExternalStore(live.watch, live.lost);

/**
 * Queries are named by their subject: ["jobs", …], ["job", id], … After an event each is refetched at its own pace,
 * so that a thousand events a second cause only a few requests. Without events nothing is fetched.
 */
const PACES_MS: Record<string, number> = {
  jobs: 500,
  job: 500,
  status: 500,
  limits: 500,
  quotas: 1000,
  shares: 4000,
  around: 1000, //: parents and dependents of a job: they change without an event of the job itself
  queues: 2000,
  nodes: 1000,
  timeline: 1000,
  history: 2000,
  manager: 4000,
  learning: 4000,
  learned: 4000,
  accounting: 10_000,
  usage: 30_000,
  site: 500,
  pipelines: 700,
  graph: 3000,
  check: 3000, //: dry run of an action whose dialog is open
};
/** Data that changes only when the feed names it. */
const ONLY_IF_SAID = ["site", "pipelines"];

export function follow(client: QueryClient): () => void {
  let everyJob = false;
  const touched = new Set<number>();

  const again = async (subject: string): Promise<void> => {
    if (subject !== "job") return client.invalidateQueries({ queryKey: [subject] });
    const [all, ids] = [everyJob, new Set(touched)];
    everyJob = false;
    touched.clear();
    return client.invalidateQueries({ predicate: ({ queryKey: [name, id] }) => name === "job" && (all || ids.has(Number(id))) });
  };
  const subjects = Object.entries(PACES_MS).map(([subject, everyMs]) => ({ subject, ...paced(everyMs, () => again(subject)) }));

  let missed = false;
  const hear = (change: Change | null): void => {
    // The page is hidden: all changes until it is shown again become one refresh.
    if (document.hidden) {
      missed = true;
      return;
    }
    everyJob ||= change === null || change.many;
    for (const [id] of change?.jobs ?? []) touched.add(id);
    for (const each of subjects) if (change === null || !ONLY_IF_SAID.includes(each.subject) || change.what.includes(each.subject)) each.wake();
  };
  const seen = (): void => {
    if (document.hidden || !missed) return;
    missed = false;
    hear(null);
  };
  const stop = live.hear(hear);
  document.addEventListener("visibilitychange", seen);
  return () => {
    stop();
    document.removeEventListener("visibilitychange", seen);
    for (const each of subjects) each.stop();
  };
}
