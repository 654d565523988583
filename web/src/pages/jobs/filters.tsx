/** The filters of the list: states with their counts, text, group, queue, user and host. All are in the address. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useId, useMemo, useRef, useState } from "react";
import { get } from "../../api/client";
import type { QueuesView } from "../../api/types";
import { count } from "../../format";
import { STATES, tone } from "../../states";
import { Icon, STATE_ICONS } from "../../ui/icons";
import { Button } from "../../ui/parts";
import { type Filter, NEWEST, ORDERS, filtered } from "./filter";

const TYPING_MS = 300;
/** A longer list of suggestions is useless. */
const OFFERED = 100;

export type Narrow = (words: Record<string, string>) => void;

interface FiltersProps {
  filter: Filter;
  sort: string;
  counts: Record<string, number>;
  groups: readonly string[];
  narrow: Narrow;
}

export function Filters({ filter, sort, counts, groups, narrow }: FiltersProps): ReactNode {
  const by = sort.replace(/^-/, "");
  const down = sort.startsWith("-");
  const [more, setMore] = useState(false);
  const queues = useQueues();
  return (
    <div className="job-filters">
      <div className="job-top">
        <h1>Jobs</h1>
        <States chosen={filter.states} counts={counts} set={(states) => narrow({ state: states.join(",") })} />
      </div>
      <div className={`job-fields ${more ? "all" : ""}`}>
        <Search value={filter.typed} set={(q) => narrow({ q })} />
        <Field name="Group" value={filter.group} offers={groups} set={(group) => narrow({ group })} />
        <Field name="Queue" value={filter.queue} offers={queues} set={(queue) => narrow({ queue })} rare />
        <Field name="User" value={filter.user} set={(user) => narrow({ user })} rare />
        <Field name="Host" value={filter.host} set={(host) => narrow({ host })} rare />
        <Button className="more-fields" aria-expanded={more} onClick={() => setMore(!more)}>{more ? "Less" : "More"}</Button>
        <label className="sorting">
          <span className="hidden">Sort by</span>
          <select className="field" value={by} onChange={(event) => narrow({ sort: `-${event.target.value}` === NEWEST ? "" : `-${event.target.value}` })}>
            {Object.entries(ORDERS).map(([name, text]) => <option key={name} value={name}>{text}</option>)}
          </select>
          <Button
            aria-label={down ? "Largest first; turn round" : "Smallest first; turn round"} title={down ? "Largest first" : "Smallest first"}
            className={down ? "" : "turned"} icon="down"
            onClick={() => narrow({ sort: down ? by : `-${by}` === NEWEST ? "" : `-${by}` })}
          />
        </label>
        {filtered(filter) ? (
          <Button kind="ghost" icon="close" onClick={() => narrow({ state: "", q: "", group: "", user: "", host: "", queue: "" })}>Clear</Button>
        ) : null}
      </div>
    </div>
  );
}

function States({ chosen, counts, set }: {
  chosen: readonly string[]; counts: Record<string, number>; set: (states: string[]) => void;
}): ReactNode {
  const shown = STATES.filter((state) => (counts[state] ?? 0) > 0 || chosen.includes(state));
  const all = Object.values(counts).reduce((sum, n) => sum + n, 0);
  return (
    <div className="chips" role="group" aria-label="States">
      <button type="button" className="chip" aria-pressed={chosen.length === 0} onClick={() => set([])}>
        All <span className="num">{count(all)}</span>
      </button>
      {shown.map((state) => {
        const on = chosen.includes(state);
        return (
          <button
            key={state} type="button" className={`chip tone-text-${tone(state)}`} aria-pressed={on}
            onClick={() => set(on ? chosen.filter((each) => each !== state) : [...chosen, state])}
          >
            <Icon name={STATE_ICONS[state] ?? "ready"} size={12} />
            {state} <span className="num">{count(counts[state] ?? 0)}</span>
          </button>
        );
      })}
    </div>
  );
}

/** The text filter, applied shortly after typing. */
function Search({ value, set }: { value: string; set: (value: string) => void }): ReactNode {
  const [text, setText] = useState(value);
  const sent = useRef(value);
  useEffect(() => {
    if (value === sent.current) return;
    sent.current = value; // the address changed otherwise: a link, or going back
    setText(value);
  }, [value]);
  useEffect(() => {
    if (text.trim() === sent.current) return;
    const timer = setTimeout(() => {
      sent.current = text.trim();
      set(text.trim());
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, set]);
  return (
    <label className="searching">
      <Icon name="search" size={14} />
      <input
        className="field" type="search" placeholder="Text in the name or command, or exit=1, name=x …" aria-label="Text in the name or command"
        title="Text, or selectors: name=x cmd~text exit=1 older=1d @part* user=x"
        maxLength={200} value={text} onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => { if (event.key === "Escape") event.currentTarget.blur(); }}
      />
    </label>
  );
}

const NONE: readonly string[] = [];

/** The names of the queues, to choose from. */
function useQueues(): readonly string[] {
  const { data } = useQuery({ queryKey: ["site", "queues"], queryFn: ({ signal }) => get<QueuesView>("/queues", {}, signal) });
  return useMemo(() => data?.queues.map((each) => each.name) ?? NONE, [data]);
}

/** A complete name: part of one matches nothing, so it is applied only when finished. */
function Field({ name, value, offers = NONE, set, rare = false }: {
  name: string; value: string; offers?: readonly string[]; set: (value: string) => void; rare?: boolean;
}): ReactNode {
  const [text, setText] = useState(value);
  const id = useId();
  useEffect(() => setText(value), [value]);
  const finish = (next: string): void => {
    if (next.trim() !== value) set(next.trim());
  };
  const fitting = offers.filter((each) => each.includes(text)).slice(0, OFFERED);
  return (
    <>
      <input
        className={`field named ${value ? "set" : ""} ${rare ? "rare" : ""}`} placeholder={name} aria-label={name} maxLength={1000} value={text}
        list={offers.length ? id : undefined} autoComplete="off"
        onChange={(event) => {
          setText(event.target.value);
          // A name picked from the list is complete.
          if (!("inputType" in event.nativeEvent) && offers.includes(event.target.value)) finish(event.target.value);
        }}
        onBlur={() => finish(text)}
        onKeyDown={(event) => {
          if (event.key === "Enter") finish(text);
          if (event.key === "Escape") setText(value);
        }}
      />
      {offers.length ? <datalist id={id}>{fitting.map((each) => <option key={each} value={each} />)}</datalist> : null}
    </>
  );
}
