/** Changes the request of a waiting job. Only edited fields are sent; the toast can undo them. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { patch } from "../../api/client";
import type { ActedView, JobView } from "../../api/types";
import { duration, size } from "../../format";
import { Dialog } from "../../ui/dialog";
import { TextField } from "../../ui/form";
import { Button, Trouble } from "../../ui/parts";
import { useSay } from "../../ui/toasts";

type Fields = Record<string, string | number>;

/** The current values of the fields, in the manager's syntax, with exact sizes and times. */
export function present(job: JobView): Record<"priority" | "mem" | "time" | "walltime", string> {
  const exact = (bytes: number | null): string => {
    if (bytes === null) return "";
    for (const [unit, value] of [["G", 1 << 30], ["M", 1 << 20], ["K", 1 << 10]] as const) {
      if (bytes && bytes % value === 0) return `${bytes / value}${unit}`;
    }
    return String(bytes);
  };
  const span = (seconds: number | null): string => {
    if (!seconds) return "";
    if (seconds % 3600 === 0) return `${seconds / 3600}h`;
    return seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`;
  };
  // A field that the user did not set is empty: defaults and learned values are not requests.
  return { priority: String(job.priority), mem: exact(job.amounts?.mem_bytes.asked ?? null), time: span(job.amounts?.time_s.asked ?? null), walltime: span(job.walltime_s) };
}

export function Change({ job, close }: { job: JobView; close: () => void }): ReactNode {
  const before = present(job);
  const requested = job.request !== null && job.request.length > 0 && job.request.every((each) => each.includes("walltime="));
  const [fields, setFields] = useState(before);
  const say = useSay();
  const queries = useQueryClient();
  const set = (name: keyof typeof before) => (value: string) => setFields((all) => ({ ...all, [name]: value.trim() }));

  const put = (change: Fields): Promise<ActedView> => patch<ActedView>("/jobs", { select: [String(job.id)], change });
  const look = (): Promise<void> => queries.invalidateQueries({ queryKey: ["job", job.id] });
  const send = useMutation({
    mutationFn: put,
    onSettled: look,
  });
  const words = (from: typeof before, names: (keyof typeof before)[]): Fields =>
    Object.fromEntries(names.map((name) => [name, name === "priority" ? Number(from[name]) : from[name]]));
  const touched = (Object.keys(before) as (keyof typeof before)[]).filter((name) => fields[name] !== before[name] && fields[name] !== "");

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    send.mutate(words(fields, touched), {
      onSuccess: ({ changed, warnings }) => {
        close();
        const capped = warnings.join("; ");
        if (!changed && capped) say(`job ${job.id}: nothing changed: ${capped}`, { bad: true });
        else if (!changed) say(`job ${job.id} can no longer be changed`, { bad: true });
        else {
          // Undo cannot restore a default or a learned value: setting it would make it a request.
          const own = (name: keyof typeof before): boolean =>
            name === "priority" || before[name] !== "";
          const back = touched.filter(own);
          const undo = back.length === touched.length ? () => void put(words(before, back)).then(look, (error: Error) => say(error.message, { bad: true })) : undefined;
          say(capped ? `job ${job.id}: ${capped}` : `job ${job.id}: ${touched.map((name) => `${name} ${fields[name]}`).join(", ")}`, undo ? { undo } : {});
        }
      },
    });
  };

  return (
    <Dialog title={`Change job ${job.id}`} close={close}>
      <form onSubmit={submit} className="job-change">
        <TextField label="Priority" type="number" min={0} max={255} value={fields.priority} change={set("priority")} hint="0 to 255, higher first" />
        <TextField label="Memory" value={fields.mem} change={set("mem")} hint={`such as 500M or 4G${fields.mem ? "" : `; it would get ${size(job.size.mem_bytes)}`}`} />
        <TextField label="Expected time" value={fields.time} change={set("time")} hint={`such as 90s, 10m or 2h; never kills${fields.time ? "" : `; ${duration(job.size.time_s)} is expected`}`} />
        <TextField label="Walltime" value={fields.walltime} change={set("walltime")} disabled={requested}
          hint={requested ? "its request says so" : "a hard limit on its duration"} />
        {send.error ? <Trouble error={send.error} /> : null}
        <div className="actions">
          <Button onClick={close}>Leave it</Button>
          <Button kind="primary" type="submit" disabled={touched.length === 0 || send.isPending}>Change</Button>
        </div>
      </form>
    </Dialog>
  );
}
