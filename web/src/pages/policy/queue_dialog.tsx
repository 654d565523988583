/** Adds a queue or changes one. An empty field means the default of all queues. */

import { type ReactNode, useState } from "react";
import type { QueueView } from "../../api/types";
import { ChoiceField, LinesField, TextField } from "../../ui/form";
import type { Wanted } from "./change";
import { Editor } from "./editor";
import { Unclear, news, seconds, shares, time, whole } from "./words";

const ORDERS = [["fifo", "fifo: first come, first served"], ["fairshare", "fairshare: who used less goes first"], ["multifactor", "multifactor: several weights"]] as const;
const BACKFILLS = [
  ["conservative", "conservative: nobody is delayed"], ["easy", "easy: the first is not delayed"],
  ["easy-sjbf", "easy-sjbf: easy, the shortest first"], ["none", "none: nobody overtakes"],
] as const;
const USERS = [["all", "all: every user"], ["admins", "admins: administrators only"]] as const;
const DOORS = [["open", "open: new jobs are taken"], ["closed", "closed: new jobs are refused"]] as const;

export function QueueDialog({ queue, names, base, close }: {
  queue: QueueView | null; names: string[]; base: number; close: () => void;
}): ReactNode {
  const before = {
    priority: String(queue?.priority ?? 2), order: queue?.order ?? "fifo", backfill: queue?.backfill ?? "conservative",
    walltime: time(queue?.walltime_s), "longest wait": time(queue?.max_wait_s ?? 604_800),
    shares: Object.entries(queue?.shares ?? {}).map((each) => each.join("=")).join("\n"),
    door: queue?.closed ? "closed" : "open", "why closed": queue?.closed_reason ?? "",
    for: queue?.admins_only ? "admins" : "all", "highest priority of jobs": String(queue?.max_priority ?? ""),
  };
  const [name, setName] = useState(queue?.name ?? "");
  const [priority, setPriority] = useState(before.priority);
  const [order, setOrder] = useState(before.order);
  const [backfill, setBackfill] = useState(before.backfill);
  const [walltime, setWalltime] = useState(before.walltime);
  const [wait, setWait] = useState(before["longest wait"]);
  const [share, setShare] = useState(before.shares);
  const [door, setDoor] = useState(before.door);
  const [who, setWho] = useState(before.for);
  const [most, setMost] = useState(before["highest priority of jobs"]);
  const [why, setWhy] = useState(before["why closed"]);

  const make = (): Wanted => {
    const meant = name.trim();
    if (queue === null && names.includes(meant)) throw new Unclear(`There is a queue '${meant}' already`, "Give another name, or change that one.");
    // Fields of the record that the form does not show stay unchanged.
    const value: Record<string, unknown> = { ...queue?.record, order, backfill };
    for (const field of ["priority", "walltime_s", "max_wait_s", "shares", "closed", "closed_reason", "max_priority"]) delete value[field];
    const given = {
      priority: whole("Priority", priority), walltime_s: seconds("Walltime", walltime), max_wait_s: seconds("Longest wait", wait), shares: shares(share),
      max_priority: whole("Highest priority of jobs", most),
    };
    for (const [field, each] of Object.entries(given)) if (each !== null) value[field] = each;
    if (Object.keys(given.shares).length === 0) delete value["shares"];
    // Queue 'admin' is for administrators by default, so the choice is stored only if it was made.
    if (who !== before.for) value["admins_only"] = who === "admins";
    if (door === "closed") Object.assign(value, { closed: true }, why.trim() ? { closed_reason: why.trim() } : {});
    return { changes: [{ kind: "queue", name: meant, value }], base, said: `${meant}: ${queue ? news(before, { priority, order, backfill, walltime, "longest wait": wait, shares: share, door, "why closed": why, for: who, "highest priority of jobs": most }) : "added"}` };
  };
  return (
    <Editor title={queue ? `Queue ${queue.name}` : "New queue"} close={close} make={make} wide>
      {queue ? null : <TextField label="Name" value={name} change={setName} required maxLength={64} />}
      <div className="fields two">
        <ChoiceField label="Order of its jobs" value={order} change={setOrder} options={ORDERS} />
        <ChoiceField label="Who may overtake" value={backfill} change={setBackfill} options={BACKFILLS} />
      </div>
      <div className="fields">
        <TextField label="Priority" inputMode="numeric" value={priority} change={setPriority} hint="Higher ones are planned first." />
        <TextField label="Walltime" placeholder="none" value={walltime} change={setWalltime} hint="For jobs that give none, such as 2h." />
        <TextField label="Longest wait" placeholder="7d" value={wait} change={setWait} hint="Who waited so long goes to the front." />
      </div>
      <div className="fields two">
        <ChoiceField label="Who may use it" value={who} change={setWho} options={USERS} hint="Rules may put jobs of others into it." />
        <TextField label="Highest priority of jobs" inputMode="numeric" placeholder="any" value={most} change={setMost} hint="0 to 255, of users who are no administrators." />
      </div>
      <div className="fields two">
        <ChoiceField label="New jobs" value={door} change={setDoor} options={DOORS} />
        {door === "closed" ? <TextField label="Why it is closed" value={why} change={setWhy} maxLength={1000} hint="Told to everybody whose job is refused." /> : null}
      </div>
      <LinesField label="Shares" rows={3} value={share} change={setShare} hint="One on each line, 0 to 1: alice=0.5 or project:x=0.2" />
    </Editor>
  );
}
