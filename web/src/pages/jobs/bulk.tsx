/** Actions on the selected jobs. An action that cannot be undone asks first, with the number of affected jobs. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import type { ActedView } from "../../api/types";
import { count, plural } from "../../format";
import { ACTIVE, ENDED, HOLDABLE, RETRYABLE, WAITING, sum } from "../../states";
import { Dialog } from "../../ui/dialog";
import { Button, Trouble } from "../../ui/parts";
import type { More, Verb } from "./actions";

interface BulkProps {
  number: number;
  everything: boolean;
  total: number;
  busy: boolean;
  priority: number | null;
  /** The selected jobs by state; undefined if they were not counted. */
  counts: Record<string, number> | undefined;
  /** The only user whose jobs may be acted on; null: all users. */
  only: string | null;
  /** The session may act on none of them. */
  others: boolean;
  /** How many of the selected jobs may not be acted on. */
  foreign: number;
  check: (verb: Verb, more?: More) => Promise<ActedView>;
  act: (verb: Verb, more?: More) => void;
  prioritise: (priority: number) => void;
  chooseAll: () => void;
  clear: () => void;
}

type Asked = "kill" | "remove" | "priority" | null;

/** The states that an action applies to, and the text for when it applies to no job. */
const CONCERNS: Record<Verb | "priority", [states: readonly string[], none: string]> = {
  retry: [RETRYABLE, "None of them has failed or was cancelled"],
  hold: [HOLDABLE, "None of them waits"],
  release: [["held"], "None of them is held"],
  priority: [[...WAITING, ...RETRYABLE], "All of them run or are complete"],
  kill: [[...ACTIVE, ...WAITING], "All of them have ended"],
  remove: [[...ENDED, ...WAITING], "None of them has ended"],
};

export function Bulk({ number, everything, total, busy, priority, counts, only, others, foreign, check, act, prioritise, chooseAll, clear }: BulkProps): ReactNode {
  const [asked, setAsked] = useState<Asked>(null);
  const close = (): void => setAsked(null);
  /** Whether the action applies to any job, and to how many. */
  const of = (what: Verb | "priority"): { disabled: boolean; title: string } => {
    const [states, none] = CONCERNS[what];
    if (others) return { disabled: true, title: "These are the jobs of others: only they and administrators can act on them" };
    if (!counts) return { disabled: busy, title: "" };
    const n = sum(counts, states);
    return { disabled: busy || n === 0, title: n === 0 ? none : `${plural(n, "job")} of ${count(number)}` };
  };
  return (
    <div className="bulk" role="toolbar" aria-label="Selected jobs">
      <span className="bulk-number num">
        {everything ? `All ${count(total)} that match` : `${count(number)} selected`}
        {foreign ? <span className="bulk-others">{foreign === number ? "not yours" : `${count(foreign)} not yours`}</span> : null}
        {everything && only !== null && !others ? <span className="bulk-others">only your own are touched</span> : null}
        {everything || number >= total ? null : (
          <button type="button" className="plain-link" onClick={chooseAll}>Select all {count(total)}</button>
        )}
      </span>
      <div className="bulk-acts">
        <Button small icon="retry" {...of("retry")} onClick={() => act("retry")}>Retry</Button>
        <Button small icon="held" {...of("hold")} onClick={() => act("hold")}>Hold</Button>
        <Button small icon="running" {...of("release")} onClick={() => act("release")}>Release</Button>
        <Button small icon="limits" {...of("priority")} onClick={() => setAsked("priority")}>Priority…</Button>
        <Button small icon="failed" kind="danger" {...of("kill")} onClick={() => setAsked("kill")}>Kill…</Button>
        <Button small icon="trash" kind="danger" {...of("remove")} onClick={() => setAsked("remove")}>Remove…</Button>
      </div>
      <Button small kind="ghost" icon="close" onClick={clear} aria-label="Clear the selection" title="Clear the selection (Esc)" />
      {asked === "kill" || asked === "remove" ? (
        <Sure verb={asked} number={number} only={only} check={check} close={close} act={(more) => { close(); act(asked, more); }} />
      ) : null}
      {asked === "priority" ? (
        <Priority number={counts ? sum(counts, CONCERNS.priority[0]) : number} before={priority} close={close} set={(value) => { close(); prioritise(value); }} />
      ) : null}
    </div>
  );
}

/** A note on the rest of a selection. */
export function rest(verb: "kill" | "remove", left: number, only: string | null): string {
  if (left <= 0) return "";
  const many = `The other ${left === 1 ? "one" : count(left)}`;
  const [has, stays, belongs] = left === 1 ? ["has", "stays as it is", "belongs"] : ["have", "stay as they are", "belong"];
  const why = verb === "kill" ? `${has} ended already` : left === 1 ? "has not ended, or others wait for it" : "have not ended, or others wait for them";
  return `${many} ${why}${only === null ? "" : `, or ${belongs} to others`}: ${left === 1 ? "it" : "they"} ${stays}.`;
}

function Sure({ verb, number, only, check, close, act }: {
  verb: "kill" | "remove"; number: number; only: string | null; check: BulkProps["check"]; close: () => void; act: (more: More) => void;
}): ReactNode {
  const [cascade, setCascade] = useState(false);
  const [waiting, setWaiting] = useState(false);
  const kill = verb === "kill";
  const more = kill ? {} : { cascade, waiting };
  // Jobs may have ended since they were ticked: the count is fetched now, and again after every change.
  const { data, error } = useQuery({ queryKey: ["check", verb, cascade, waiting], queryFn: () => check(verb, more), gcTime: 0, retry: false });
  const n = data?.changed;
  const name = kill ? "Kill" : "Remove";
  const title = n === undefined ? `${name} jobs` : n === 0 ? `Nothing to ${verb}` : `${name} ${plural(n, "job")}?`;
  return (
    <Dialog title={title} close={close}>
      {error ? <Trouble error={error} /> : n === undefined ? <p className="muted" aria-busy="true">Counting…</p> : (
        <p>
          {n > 0 ? `${plural(n, "job")} of ${count(number)} selected.` : null} {cascade ? null : rest(verb, number - n, only)}
        </p>
      )}
      <p className="muted">
        {kill
          ? "Those that run are ended, those that wait will not start. They stay listed as cancelled and can be retried; what they did so far is lost."
          : "They disappear from all lists, with their output. This cannot be undone. Jobs that run or wait, and those that such jobs wait for, are kept."}
      </p>
      {kill ? null : (
        <>
          <label className="choice">
            <input type="checkbox" checked={waiting} onChange={(event) => setWaiting(event.target.checked)} />
            Also jobs that wait: they will never run
          </label>
          <label className="choice">
            <input type="checkbox" checked={cascade} onChange={(event) => setCascade(event.target.checked)} />
            Also all jobs that depend on them
          </label>
        </>
      )}
      <div className="actions">
        <Button onClick={close}>Cancel</Button>
        <Button kind="danger" autoFocus disabled={n === undefined || n === 0} onClick={() => act(more)}>{n ? `${name} ${plural(n, "job")}` : name}</Button>
      </div>
    </Dialog>
  );
}

function Priority({ number, before, close, set }: {
  number: number; before: number | null; close: () => void; set: (value: number) => void;
}): ReactNode {
  const [text, setText] = useState(before === null ? "" : String(before));
  const value = /^\d{1,3}$/.test(text) ? Number(text) : -1;
  const fine = value >= 0 && value <= 255;
  return (
    <Dialog title={`Priority of ${plural(number, "job")}`} close={close}>
      <form onSubmit={(event) => { event.preventDefault(); if (fine) set(value); }}>
        <label className="choice">
          <input
            className="field" type="number" min={0} max={255} step={1} required autoFocus value={text}
            aria-describedby="priority-hint" onChange={(event) => setText(event.target.value)}
          />
          <span id="priority-hint" className="muted">0 to 255; higher ones start first</span>
        </label>
        <div className="actions">
          <Button onClick={close}>Cancel</Button>
          <Button kind="primary" type="submit" disabled={!fine}>Set</Button>
        </div>
      </form>
    </Dialog>
  );
}
