/** Declares a limit or changes it. A change takes effect at once; running jobs go on. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { put } from "../../api/client";
import type { LimitChange, LimitView } from "../../api/types";
import { count } from "../../format";
import { Dialog } from "../../ui/dialog";
import { TextField } from "../../ui/form";
import { Button, Trouble } from "../../ui/parts";
import { useSay } from "../../ui/toasts";
import { Unclear, whole } from "./words";

const meaning = ({ unlimited, capacity, window: hours }: LimitChange): string =>
  unlimited
    ? "no limit any more"
    : [typeof capacity === "number" ? `${count(capacity)} at once` : "", hours ? `at ${hours}` : ""].filter(Boolean).join(", ");

export function LimitDialog({ limit, host: on, close }: { limit: LimitView | null; host: string; close: () => void }): ReactNode {
  const before = on ? limit?.hosts[on]?.["capacity"] : limit?.capacity;
  const [name, setName] = useState(limit?.name ?? "");
  const [capacity, setCapacity] = useState(before === null || before === undefined ? "" : String(before));
  const [hours, setHours] = useState(limit?.window ?? "");
  const [host, setHost] = useState(on);
  const [unclear, setUnclear] = useState<Unclear | null>(null);
  const client = useQueryClient();
  const say = useSay();
  const { mutate, isPending, error } = useMutation({
    mutationFn: (change: LimitChange) => put<void>(`/limits/${encodeURIComponent(name.trim())}`, change),
    onSuccess: (_nothing, change) => {
      say(`${name.trim()}${change.host ? ` on ${change.host}` : ""}: ${meaning(change)}`);
      void client.invalidateQueries({ queryKey: ["limits"] });
      close();
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    try {
      const number = whole("Units", capacity);
      if (number === null && !hours.trim()) throw new Unclear("say how many units there are", "0 lets no job start");
      if (limit?.window && !on && !hours.trim()) throw new Unclear("Hours are not taken away alone", "Remove the limit, then declare it again with its units.");
      setUnclear(null);
      mutate({ ...(number === null ? {} : { capacity: number }), ...(hours.trim() ? { window: hours.trim() } : {}), host: host.trim() });
    } catch (problem) {
      if (!(problem instanceof Unclear)) throw problem;
      setUnclear(problem);
    }
  };
  const problem = unclear ?? error;
  return (
    <Dialog title={limit ? `Limit ${limit.name}${on ? ` on ${on}` : ""}` : "New limit"} close={close}>
      <form className="editor" onSubmit={submit}>
        {limit ? null : <TextField label="Name" value={name} change={setName} required maxLength={255} />}
        <TextField label="Units" inputMode="numeric" value={capacity} change={setCapacity} hint="So many may be in use at once; 0 stops jobs that want it." />
        {on ? null : <TextField label="Hours" placeholder="always" value={hours} change={setHours} hint="Jobs start only then, such as 22:00-06:00." />}
        {limit ? null : <TextField label="Machine" placeholder="all together" value={host} change={setHost} hint="A name: the units are this machine’s, and count there only." />}
        {problem ? <Trouble error={problem} /> : null}
        <div className="actions">
          {limit ? <Button kind="danger" className="first" disabled={isPending} onClick={() => mutate({ unlimited: true, host: on })}>Remove the limit</Button> : null}
          <Button kind="ghost" onClick={close}>Cancel</Button>
          <Button kind="primary" type="submit" disabled={isPending || !name.trim()}>Save</Button>
        </div>
      </form>
    </Dialog>
  );
}
