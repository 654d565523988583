/** Sets a quota. Its rule is its name, so another rule means another quota. */

import { type ReactNode, useState } from "react";
import { TextField } from "../../ui/form";
import type { Wanted } from "./change";
import { Editor } from "./editor";
import { limit, limitText } from "./words";

export interface Quota {
  rule: string;
  limits: (number | string)[];
  set?: string;
}

const PARTS = ["Queue", "Project", "Type", "User"];
const AMOUNTS = ["Resources", "Jobs", "Resource-hours"];

/** The name of a quota's record. */
export const quotaName = ({ rule, set }: Pick<Quota, "rule" | "set">): string => (set ? `${set}: ${rule}` : rule);

const meaning = (limits: Quota["limits"]): string =>
  limits.flatMap((each, at) => (each === -1 ? [] : [`${each} ${(AMOUNTS[at] ?? "").toLowerCase()}`])).join(", ") || "any number";

export function QuotaDialog({ name, quota, base, close }: {
  name: string | null; quota: Quota | null; base: number; close: () => void;
}): ReactNode {
  const [parts, setParts] = useState(() => (quota?.rule ?? "*,*,*,/").split(","));
  const [amounts, setAmounts] = useState(() => [0, 1, 2].map((at) => limitText(quota?.limits[at])));
  const [set, setSet] = useState(quota?.set ?? "");
  const put = (all: string[], at: number, value: string): string[] => all.map((each, place) => (place === at ? value : each));

  const make = (): Wanted => {
    const rule = PARTS.map((_part, at) => (parts[at] ?? "").trim() || "*").join(",");
    const value: Quota = { rule, limits: AMOUNTS.map((label, at) => limit(label, amounts[at] ?? "")), ...(set.trim() ? { set: set.trim() } : {}) };
    const called = quotaName(value);
    const old = name !== null && name !== called ? [{ kind: "quota", name, value: null }] : [];
    return { changes: [...old, { kind: "quota", name: called, value }], base, said: `${called}: ${meaning(value.limits)}` };
  };
  return (
    <Editor title={quota ? "Change a quota" : "New quota"} close={close} make={make} wide>
      <fieldset>
        <legend>Whose jobs</legend>
        <div className="fields four">
          {PARTS.map((label, at) => <TextField key={label} label={label} value={parts[at] ?? "*"} change={(value) => setParts((all) => put(all, at, value))} />)}
        </div>
        <small className="muted">A name, <code>*</code> for all together, or <code>/</code> for each separately.</small>
      </fieldset>
      <fieldset>
        <legend>At most, at once</legend>
        <div className="fields">
          {AMOUNTS.map((label, at) => <TextField key={label} label={label} placeholder="any" value={amounts[at] ?? ""} change={(value) => setAmounts((all) => put(all, at, value))} />)}
        </div>
        <small className="muted">Resources may be a part of all, such as <code>0.5*ALL</code>.</small>
      </fieldset>
      <TextField label="Rule set" placeholder="always" value={set} change={setSet} maxLength={64} hint="Only while the calendar has this set apply." />
    </Editor>
  );
}
