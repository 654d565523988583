/** Adds a period of the calendar, or changes one. */

import { type ReactNode, useState } from "react";
import { Segments, TextField } from "../../ui/form";
import type { Wanted } from "./change";
import { Editor } from "./editor";
import { Unclear } from "./words";

export interface Period {
  set: string;
  period?: string;
  from?: string;
  to?: string;
  description?: string;
}

/** The name of a period's record. */
export const periodName = (each: Period): string => `${each.period || `${each.from}/${each.to}`}: ${each.set}`;

const KINDS = [["weekly", "Every week"], ["once", "Once"]] as const;

export function PeriodDialog({ name, period: before, base, close }: {
  name: string | null; period: Period | null; base: number; close: () => void;
}): ReactNode {
  const [kind, setKind] = useState(before && !before.period ? "once" : "weekly");
  const [period, setPeriod] = useState(before?.period ?? "");
  const [from, setFrom] = useState(before?.from ?? "");
  const [to, setTo] = useState(before?.to ?? "");
  const [set, setSet] = useState(before?.set ?? "");
  const [description, setDescription] = useState(before?.description ?? "");

  const make = (): Wanted => {
    const weekly = period.toLowerCase().split(/\s+/).filter(Boolean).join(" ");
    if (kind === "weekly" && !weekly) throw new Unclear("Say at which hours", "Write it like 08:00-19:00 mon-fri.");
    if (kind === "once" && (!from || !to)) throw new Unclear("Say from when to when", "Both ends are needed.");
    const value: Period = { set: set.trim(), ...(kind === "weekly" ? { period: weekly } : { from, to }), ...(description.trim() ? { description: description.trim() } : {}) };
    const called = periodName(value);
    const old = name !== null && name !== called ? [{ kind: "calendar", name, value: null }] : [];
    return { changes: [...old, { kind: "calendar", name: called, value }], base, said: `${called}: ${name ? "changed" : "added"}` };
  };
  return (
    <Editor title={before ? "Change a period" : "New period"} close={close} make={make}>
      <Segments label="How often" value={kind} change={setKind} options={KINDS} />
      {kind === "weekly" ? (
        <TextField label="Hours and days" placeholder="08:00-19:00 mon-fri" value={period} change={setPeriod} hint="Either may be left out; hours may cross midnight." />
      ) : (
        <div className="fields">
          <TextField label="From" type="datetime-local" value={from} change={setFrom} />
          <TextField label="To" type="datetime-local" value={to} change={setTo} />
        </div>
      )}
      <TextField label="Rule set" value={set} change={setSet} required maxLength={64} hint="Quotas name the set to which they belong." />
      <TextField label="Description" value={description} change={setDescription} maxLength={255} hint="What it is for." />
    </Editor>
  );
}
