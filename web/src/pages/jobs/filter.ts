/** The filter and order of the job list: read from the address, sent to the manager as selectors. */

import { STATES } from "../../states";

export interface Filter {
  states: readonly string[];
  group: string;
  user: string;
  host: string;
  queue: string;
  /** What the search box contains: selectors and text. */
  typed: string;
  /** The selectors in it, which all hold. */
  terms: readonly string[];
  /** The rest of it, which is searched for. */
  search: string;
}

/** Words of the search box that are selectors, as on the command line. Anything else is text. */
const TERM = /^(@.+|(name|exit|older|user|host|group|queue|project|pool)=.+|cmd~.+)$/;
const STATE = /^state=(.+)$/;

export const ORDERS = {
  id: "Id",
  submitted: "Submitted",
  started: "Started",
  ended: "Ended",
  wall: "Duration",
  cpu: "CPU time",
  mem: "Memory",
  priority: "Priority",
} as const;
export type Order = keyof typeof ORDERS;

export const NEWEST = "-id";
/** The most jobs that the manager lists in an order other than by id. */
const SORTED = 10_000;

/** How many of the matching rows can be scrolled through. */
export const reach = (sort: string, total: number): number => (sort.replace(/^-/, "") === "id" ? total : Math.min(total, SORTED));

export function filterOf(query: URLSearchParams): Filter {
  const typed = (query.get("q") ?? "").slice(0, 200);
  const words = typed.split(/\s+/).filter(Boolean);
  const asked = [...(query.get("state") ?? "").split(","), ...words.map((word) => STATE.exec(word)?.[1] ?? "")];
  const known = (word: string): boolean => TERM.test(word) || STATES.some((state) => word === `state=${state}`);
  return {
    states: STATES.filter((state) => asked.includes(state)),
    group: query.get("group") ?? "",
    user: query.get("user") ?? "",
    host: query.get("host") ?? "",
    queue: query.get("queue") ?? "",
    typed,
    terms: words.filter((word) => TERM.test(word)),
    search: words.some(known) ? words.filter((word) => !known(word)).join(" ") : typed,
  };
}

/** A valid sort order, even if the address has an invalid one. */
export function sortOf(query: URLSearchParams): string {
  const text = query.get("sort") ?? NEWEST;
  return text.replace(/^-/, "") in ORDERS ? text : NEWEST;
}

/** A click on a header sorts by it, largest first; a second click reverses the order. */
export function sorted(current: string, by: Order): string {
  return current === `-${by}` ? by : `-${by}`;
}

/** A group in selector syntax: commas in its name, and an asterisk at its end, are escaped with a backslash. */
export const named = (group: string): string => `@${group.replaceAll(",", "\\,").replace(/\*$/, "\\*")}`;

/** The filter without the state, as one term of a selector; empty: all jobs. */
export function scope({ group, user, host, queue, terms }: Filter): string {
  const fields = [group && named(group), user && `user=${user}`, host && `host=${host}`, queue && `queue=${queue}`];
  return [...fields.filter(Boolean), ...terms].join(",");
}

/** The selectors of a filter. Commas mean AND within a term, several terms mean OR. */
export function selectors(filter: Filter): string[] {
  const rest = scope(filter);
  if (filter.states.length === 0) return rest ? [rest] : [];
  return filter.states.map((state) => `state=${state}${rest ? `,${rest}` : ""}`);
}

export const filtered = (filter: Filter): boolean =>
  filter.states.length > 0 || filter.search !== "" || scope(filter) !== "";

/** An address of the jobs page, for links from elsewhere. */
export function addressOf(words: Record<string, string>): string {
  const query = new URLSearchParams(Object.entries(words).filter(([, value]) => value !== ""));
  const text = query.toString();
  return text ? `/jobs?${text}` : "/jobs";
}
