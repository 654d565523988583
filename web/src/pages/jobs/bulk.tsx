/** What can be done to the selected jobs. What cannot be taken back is asked about first, with numbers. */

import { type ReactNode, useState } from "react";
import { count, plural } from "../../format";
import { Dialog } from "../../ui/dialog";
import { Button } from "../../ui/parts";
import type { More, Verb } from "./actions";

interface BulkProps {
  number: number;
  everything: boolean;
  total: number;
  busy: boolean;
  priority: number | null;
  act: (verb: Verb, more?: More) => void;
  prioritise: (priority: number) => void;
  chooseAll: () => void;
  clear: () => void;
}

type Asked = "kill" | "remove" | "priority" | null;

export function Bulk({ number, everything, total, busy, priority, act, prioritise, chooseAll, clear }: BulkProps): ReactNode {
  const [asked, setAsked] = useState<Asked>(null);
  const close = (): void => setAsked(null);
  return (
    <div className="bulk" role="toolbar" aria-label="Selected jobs">
      <span className="bulk-number num">
        {everything ? `All ${count(total)} that match` : `${count(number)} selected`}
        {everything || number >= total ? null : (
          <button type="button" className="plain-link" onClick={chooseAll}>Select all {count(total)}</button>
        )}
      </span>
      <div className="bulk-acts">
        <Button small icon="retry" disabled={busy} onClick={() => act("retry")}>Retry</Button>
        <Button small icon="held" disabled={busy} onClick={() => act("hold")}>Hold</Button>
        <Button small icon="running" disabled={busy} onClick={() => act("release")}>Release</Button>
        <Button small icon="limits" disabled={busy} onClick={() => setAsked("priority")}>Priority…</Button>
        <Button small icon="failed" kind="danger" disabled={busy} onClick={() => setAsked("kill")}>Kill…</Button>
        <Button small icon="trash" kind="danger" disabled={busy} onClick={() => setAsked("remove")}>Remove…</Button>
      </div>
      <Button small kind="ghost" icon="close" onClick={clear} aria-label="Clear the selection" title="Clear the selection (Esc)" />
      {asked === "kill" || asked === "remove" ? (
        <Sure verb={asked} number={number} close={close} act={(more) => { close(); act(asked, more); }} />
      ) : null}
      {asked === "priority" ? (
        <Priority number={number} before={priority} close={close} set={(value) => { close(); prioritise(value); }} />
      ) : null}
    </div>
  );
}

function Sure({ verb, number, close, act }: {
  verb: "kill" | "remove"; number: number; close: () => void; act: (more: More) => void;
}): ReactNode {
  const [cascade, setCascade] = useState(false);
  const [waiting, setWaiting] = useState(false);
  const kill = verb === "kill";
  return (
    <Dialog title={kill ? `Kill ${plural(number, "job")}?` : `Remove what has ended of ${plural(number, "job")}?`} close={close}>
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
        <Button kind="danger" autoFocus onClick={() => act(kill ? {} : { cascade, waiting })}>
          {kill ? `Kill ${plural(number, "job")}` : "Remove"}
        </Button>
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
