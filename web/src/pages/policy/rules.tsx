/** Admission rules in the order in which they are tried. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { get } from "../../api/client";
import type { RuleView, RulesView } from "../../api/types";
import { Button, Card, Skeleton, Trouble } from "../../ui/parts";
import { useSiteChange } from "./change";
import { Removal } from "./editor";
import { moved } from "./ranks";
import { ACTIONS, RuleDialog } from "./rule_dialog";
import { listed } from "./words";

function Match({ rule }: { rule: RuleView }): ReactNode {
  const words = listed(rule.match);
  if (words.length === 0) return <span className="faint">every job</span>;
  return <span className="tags">{words.map((word) => <span key={word} className="tag">{word}</span>)}</span>;
}

const TONES = { default: "run", cap: "warn", set: "odd", reject: "bad" } as const;

function Does({ rule }: { rule: RuleView }): ReactNode {
  const action = ACTIONS.find((each) => rule[each] !== null) ?? "default";
  const what = rule[action];
  return (
    <span className="tags">
      <span className={`badge tone-${TONES[action]}`}>{action}</span>
      {typeof what === "string" ? <span className="said">{what}</span> : listed(what ?? {}).map((word) => <span key={word} className="tag">{word}</span>)}
    </span>
  );
}

type Asking = { what: "edit"; rule: RuleView | null } | { what: "remove" | "reset"; rule: RuleView };

export function Rules({ admin }: { admin: boolean }): ReactNode {
  const { data, error } = useQuery({ queryKey: ["site", "rules"], queryFn: ({ signal }) => get<RulesView>("/rules", {}, signal) });
  const [asking, setAsking] = useState<Asking | null>(null);
  const { change, busy, error: problem } = useSiteChange();
  const close = (): void => setAsking(null);
  if (error && !data) return <Trouble error={error} />;
  if (!data) return <Skeleton lines={5} />;
  const move = (rule: RuleView, by: number): void =>
    change({ changes: moved(data.rules, rule.name, rule.position - 1 + by), base: data.version, said: `${rule.name}: rule ${rule.position + by}` });
  return (
    <Card title="Admission rules" aside={admin ? <Button small icon="plus" onClick={() => setAsking({ what: "edit", rule: null })}>New rule</Button> : null}>
      <p className="muted explain">Tried from the top on every job that is added. Jobs that were added before are not touched.</p>
      {problem ? <Trouble error={problem} /> : null}
      <ol className="rules">
        {data.rules.map((rule) => (
          <li key={rule.name}>
            <span className="place num">{rule.position}</span>
            <span className="called"><b>{rule.name}</b> {rule.built_in ? <span className="tag">built in</span> : rule.replaces ? <span className="tag">changed</span> : null}</span>
            <Match rule={rule} />
            <Does rule={rule} />
            {admin ? (
              <span className="acts">
                <Button small kind="ghost" icon="down" className="up" disabled={busy || rule.position === 1} aria-label={`Move ${rule.name} up`} onClick={() => move(rule, -1)} />
                <Button small kind="ghost" icon="down" disabled={busy || rule.position === data.rules.length} aria-label={`Move ${rule.name} down`} onClick={() => move(rule, 1)} />
                <Button small kind="ghost" icon="edit" aria-label={`Change rule ${rule.name}`} onClick={() => setAsking({ what: "edit", rule })} />
                {rule.replaces ? <Button small kind="ghost" icon="reset" aria-label={`Reset rule ${rule.name}`} onClick={() => setAsking({ what: "reset", rule })} /> : null}
                <Button small kind="ghost" icon="trash" aria-label={`Remove rule ${rule.name}`} onClick={() => setAsking({ what: "remove", rule })} />
              </span>
            ) : null}
          </li>
        ))}
      </ol>
      {data.removed.length ? (
        <p className="explain muted">
          Not wanted here:{" "}
          {data.removed.map((name) => (
            <span key={name} className="removed">
              {name}
              {admin ? <Button small kind="ghost" icon="reset" disabled={busy}
                onClick={() => change({ changes: [{ kind: "rule", name, value: null }], base: data.version, said: `${name}: as it was` })}>Restore</Button> : null}
            </span>
          ))}
        </p>
      ) : null}
      {asking?.what === "edit" ? <RuleDialog rule={asking.rule} rules={data.rules} base={data.version} close={close} /> : null}
      {asking?.what === "remove" || asking?.what === "reset" ? (
        <Removal title={asking.what === "reset" ? `Make rule ${asking.rule.name} what it was?` : `Remove rule ${asking.rule.name}?`} close={close} does={asking.what === "reset" ? "Reset" : "Remove"}
          make={() => ({
            changes: [{ kind: "rule", name: asking.rule.name, value: asking.what === "remove" && (asking.rule.built_in || asking.rule.replaces) ? { removed: true } : null }],
            base: data.version,
            said: `${asking.rule.name}: ${asking.what === "reset" ? "as it was" : "removed"}`,
          })}>
          {asking.rule.built_in || asking.rule.replaces ? <p className="muted">It is built in: it can be brought back at any time.</p> : null}
        </Removal>
      ) : null}
    </Card>
  );
}
