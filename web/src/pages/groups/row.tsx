/** One group: its progress, its speed and its actions. */

import { type ReactNode, memo } from "react";
import { count, moment, percent } from "../../format";
import { Link } from "../../router";
import { ACTIVE, STUCK, WAITING, stuck, sum } from "../../states";
import { Icon } from "../../ui/icons";
import { Button, Progress } from "../../ui/parts";
import { addressOf, named } from "../jobs/filter";
import { since } from "../jobs/when";
import { type Group, pace } from "./order";

interface RowProps {
  group: Group;
  index: number;
  current: boolean;
  selected: boolean;
  now: number;
  busy: boolean;
  pick: (name: string) => void;
  retry: (group: Group) => void;
  kill: (group: Group) => void;
}

function Number({ group, state, n, text }: { group: Group; state: string; n: number; text: string }): ReactNode {
  if (n === 0) return null;
  return <Link to={addressOf({ group: group.name, state })} className={`num tone-of-${text}`}>{count(n)} {text}</Link>;
}

export const GroupRow = memo(function GroupRow({ group, index, current, selected, now, busy, pick, retry, kill }: RowProps): ReactNode {
  const left = group.active + group.waiting;
  const waiting = group.waiting - sum(group.counts, STUCK);
  return (
    <li className={`group-row ${current ? "current" : ""} ${selected ? "selected" : ""}`} aria-current={current || undefined} aria-posinset={index + 1}>
      <label className="check"><input type="checkbox" checked={selected} onChange={() => pick(group.name)} aria-label={`Select ${group.name}`} /></label>
      <Link to={addressOf({ group: group.name })} className="clip group-name" title={group.name}>{group.name}</Link>
      <div className="group-bar"><Progress counts={group.counts} label={`Progress of ${group.name}`} /></div>
      <span className="num group-done" title={`${count(group.done)} of ${count(group.total)} ended`}>
        <b>{percent(group.done, group.total)}</b> <span className="faint">{count(group.done)} / {count(group.total)}</span>
      </span>
      <span className="group-states">
        <Number group={group} state="failed" n={group.failed} text="failed" />
        <Number group={group} state="running" n={group.counts["running"] ?? 0} text="running" />
        <Number group={group} state="cancelled" n={group.counts["cancelled"] ?? 0} text="cancelled" />
        <Number group={group} state="held" n={group.counts["held"] ?? 0} text="held" />
        <Number group={group} state="blocked" n={group.counts["blocked"] ?? 0} text="blocked" />
        {waiting ? <span className="num faint">{count(waiting)} waiting</span> : null}
      </span>
      <span className="num right group-rate">{pace(group.rate)}</span>
      <span className="num right group-end" title={[group.expectedEnd ? moment(group.expectedEnd) : "", group.endReason].filter(Boolean).join("; ")}>
        {left === 0 ? <span className="faint">done</span> : null}
        {stuck(group.counts) ? <span className="faint" title="What is left is held or blocked">–</span> : null}
        {left > 0 && group.expectedEnd ? since(group.expectedEnd, now) : null}
        {left > 0 && !group.expectedEnd && !stuck(group.counts) ? <span className="faint">not known</span> : null}
      </span>
      <span className="group-acts">
        <Link to={`/graph?select=${encodeURIComponent(named(group.name))}`} className="button ghost small" aria-label={`Dependencies of ${group.name}`} title="Dependencies">
          <Icon name="dependent" size={14} />
        </Link>
        {group.own["failed"] ? (
          <Button small kind="ghost" icon="retry" disabled={busy} onClick={() => retry(group)} aria-label={`Retry failed of ${group.name}`} title="Retry failed">Retry failed</Button>
        ) : null}
        {sum(group.own, ACTIVE) + sum(group.own, WAITING) ? (
          <Button small kind="ghost" icon="failed" className="danger" disabled={busy} onClick={() => kill(group)} aria-label={`Kill ${group.name}`} title="Kill…">Kill…</Button>
        ) : null}
      </span>
    </li>
  );
});
