/** Adds an admission rule at the end, or changes one in its place. */

import { type ReactNode, useState } from "react";
import type { RuleView } from "../../api/types";
import { ChoiceField, LinesField, TextField } from "../../ui/form";
import type { Wanted } from "./change";
import { Editor } from "./editor";
import { after } from "./ranks";
import { Unclear, fields, listed } from "./words";

export const ACTIONS = ["default", "cap", "set", "reject"] as const;
type Action = (typeof ACTIONS)[number];

const OPTIONS = [
  ["default", "default: fill in what jobs left open"], ["cap", "cap: no more than this"],
  ["set", "set: this, whatever the job says"], ["reject", "reject: refuse the job, and say why"],
] as const;

const isAction = (word: string): word is Action => ACTIONS.some((each) => each === word);

export function RuleDialog({ rule, rules, base, close }: {
  rule: RuleView | null; rules: RuleView[]; base: number; close: () => void;
}): ReactNode {
  const before = rule ? (ACTIONS.find((each) => rule[each] !== null) ?? "default") : "cap";
  const [name, setName] = useState(rule?.name ?? "");
  const [match, setMatch] = useState(listed(rule?.match ?? {}).join("\n"));
  const [action, setAction] = useState<Action>(before);
  const [values, setValues] = useState(() => {
    const what = rule?.[before];
    return typeof what === "object" && what !== null ? listed(what).join("\n") : "";
  });
  const [message, setMessage] = useState(rule?.reject ?? "");

  const make = (): Wanted => {
    const meant = name.trim();
    if (rule === null && rules.some((each) => each.name === meant)) throw new Unclear(`There is a rule '${meant}' already`, "Give another name, or change that one.");
    const conditions = fields("Jobs with", match, { patterns: true });
    const value: Record<string, unknown> = { rank: rule?.rank ?? after(rules) };
    if (Object.keys(conditions).length) value["match"] = conditions;
    value[action] = action === "reject" ? message.trim() : fields("Values", values, { patterns: false });
    return { changes: [{ kind: "rule", name: meant, value }], base, said: `${meant}: ${[action, ...(action === "reject" ? [] : listed(value[action] as Record<string, unknown>))].join(" ")}` };
  };
  return (
    <Editor title={rule ? `Rule ${rule.name}` : "New rule"} close={close} make={make} wide>
      {rule ? null : <TextField label="Name" value={name} change={setName} required maxLength={64} />}
      <LinesField label="Jobs with" rows={3} value={match} change={setMatch}
        hint={<>One on each line, all must hold; none: every job. <code>user=bob,eve</code>, <code>queue=!admin</code>, <code>walltime_over=12h</code>, <code>interactive=yes</code></>} />
      <ChoiceField label="Then" value={action} change={(word) => { if (isAction(word)) setAction(word); }} options={OPTIONS} />
      {action === "reject" ? (
        <TextField label="Message" value={message} change={setMessage} required maxLength={1000} />
      ) : (
        <LinesField label="Values" rows={3} value={values} change={setValues} hint={<>One on each line: <code>walltime=12h</code>, <code>mem=4G</code>, <code>queue=default</code>, <code>priority=10</code></>} />
      )}
    </Editor>
  );
}
