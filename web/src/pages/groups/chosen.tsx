/** Actions on all selected groups. */

import type { ReactNode } from "react";
import { plural } from "../../format";
import { ACTIVE, HOLDABLE, WAITING, sum } from "../../states";
import { Dialog } from "../../ui/dialog";
import { Button } from "../../ui/parts";
import type { Verb } from "../jobs/actions";
import { named } from "../jobs/filter";
import type { Group } from "./order";

export const selectorsOf = (groups: readonly Group[], state = ""): string[] =>
  groups.map(({ name }) => (state ? `state=${state},${named(name)}` : named(name)));

const total = (groups: readonly Group[], of: (group: Group) => number): number => groups.reduce((sum, each) => sum + of(each), 0);

export function ChosenBar({ groups, busy, act, kill, clear }: {
  groups: readonly Group[]; busy: boolean; act: (verb: Verb, select: string[]) => void; kill: (groups: readonly Group[]) => void; clear: () => void;
}): ReactNode {
  const own = (states: readonly string[]): number => total(groups, (each) => sum(each.own, states));
  const why = groups.every((each) => Object.keys(each.own).length === 0) ? "None of their jobs is yours" : undefined;
  return (
    <div className="bulk" role="toolbar" aria-label="Selected groups">
      <span className="bulk-number num">{plural(groups.length, "group")} selected</span>
      <div className="bulk-acts">
        <Button small icon="retry" title={why} disabled={busy || own(["failed"]) === 0} onClick={() => act("retry", selectorsOf(groups, "failed"))}>Retry failed</Button>
        <Button small icon="held" title={why} disabled={busy || own(HOLDABLE) === 0} onClick={() => act("hold", selectorsOf(groups))}>Hold</Button>
        <Button small icon="running" title={why} disabled={busy || own(["held"]) === 0} onClick={() => act("release", selectorsOf(groups, "held"))}>Release</Button>
        <Button small icon="failed" kind="danger" title={why} disabled={busy || own([...ACTIVE, ...WAITING]) === 0} onClick={() => kill(groups)}>Kill…</Button>
      </div>
      <Button small kind="ghost" icon="close" onClick={clear} aria-label="Clear the selection" title="Clear the selection (Esc)" />
    </div>
  );
}

export function KillDialog({ groups, close, kill }: { groups: readonly Group[]; close: () => void; kill: () => void }): ReactNode {
  const active = total(groups, (each) => sum(each.own, ACTIVE));
  const waiting = total(groups, (each) => sum(each.own, WAITING));
  const ended = total(groups, (each) => each.done);
  const others = total(groups, (each) => each.active + each.waiting) - active - waiting;
  const whose = groups.length === 1 ? `“${groups[0]?.name ?? ""}”` : plural(groups.length, "group");
  return (
    <Dialog title={`Kill ${plural(active + waiting, "job")} of ${whose}?`} close={close}>
      <p className="muted">
        {plural(active, "job")} that {active === 1 ? "runs" : "run"} will be ended, {waiting === 1 ? "one" : waiting.toLocaleString("en")} that
        {waiting === 1 ? " waits" : " wait"} will not start. They can be retried.
        {ended ? ` ${plural(ended, "job")} ${ended === 1 ? "has" : "have"} ended already and ${ended === 1 ? "stays as it is" : "stay as they are"}.` : null}
        {others ? ` ${plural(others, "job")} of others ${others === 1 ? "goes" : "go"} on.` : null}
      </p>
      <div className="actions">
        <Button onClick={close}>Cancel</Button>
        <Button kind="danger" autoFocus onClick={kill}>{groups.length === 1 ? "Kill the group" : "Kill the groups"}</Button>
      </div>
    </Dialog>
  );
}
