/** What can be done to the selected groups at once. */

import type { ReactNode } from "react";
import { plural } from "../../format";
import { Dialog } from "../../ui/dialog";
import { Button } from "../../ui/parts";
import type { Verb } from "../jobs/actions";
import type { Group } from "./order";

export const selectorsOf = (groups: readonly Group[], state = ""): string[] =>
  groups.map(({ name }) => (state ? `state=${state},@${name}` : `@${name}`));

const total = (groups: readonly Group[], of: (group: Group) => number): number => groups.reduce((sum, each) => sum + of(each), 0);

export function ChosenBar({ groups, busy, act, kill, clear }: {
  groups: readonly Group[]; busy: boolean; act: (verb: Verb, select: string[]) => void; kill: (groups: readonly Group[]) => void; clear: () => void;
}): ReactNode {
  const left = total(groups, (each) => each.active + each.waiting);
  return (
    <div className="bulk" role="toolbar" aria-label="Selected groups">
      <span className="bulk-number num">{plural(groups.length, "group")} selected</span>
      <div className="bulk-acts">
        <Button small icon="retry" disabled={busy || total(groups, (each) => each.failed) === 0} onClick={() => act("retry", selectorsOf(groups, "failed"))}>Retry failed</Button>
        <Button small icon="held" disabled={busy || total(groups, (each) => each.waiting) === 0} onClick={() => act("hold", selectorsOf(groups))}>Hold</Button>
        <Button small icon="running" disabled={busy || total(groups, (each) => each.counts["held"] ?? 0) === 0} onClick={() => act("release", selectorsOf(groups, "held"))}>Release</Button>
        <Button small icon="failed" kind="danger" disabled={busy || left === 0} onClick={() => kill(groups)}>Kill…</Button>
      </div>
      <Button small kind="ghost" icon="close" onClick={clear} aria-label="Clear the selection" title="Clear the selection (Esc)" />
    </div>
  );
}

export function KillDialog({ groups, close, kill }: { groups: readonly Group[]; close: () => void; kill: () => void }): ReactNode {
  const active = total(groups, (each) => each.active);
  const waiting = total(groups, (each) => each.waiting);
  const whose = groups.length === 1 ? `“${groups[0]?.name ?? ""}”` : plural(groups.length, "group");
  return (
    <Dialog title={`Kill ${plural(active + waiting, "job")} of ${whose}?`} close={close}>
      <p className="muted">
        {plural(active, "job")} that {active === 1 ? "runs" : "run"} will be ended, {waiting === 1 ? "one" : waiting.toLocaleString("en")} that
        {waiting === 1 ? " waits" : " wait"} will not start. They can be retried.
      </p>
      <div className="actions">
        <Button onClick={close}>Cancel</Button>
        <Button kind="danger" autoFocus onClick={kill}>{groups.length === 1 ? "Kill the group" : "Kill the groups"}</Button>
      </div>
    </Dialog>
  );
}
