/** Actions of an administrator: drain a machine, or declare it gone. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { get } from "../../api/client";
import type { Records } from "../../api/types";
import { Dialog } from "../../ui/dialog";
import { ChoiceField, TextField } from "../../ui/form";
import { Button, Trouble } from "../../ui/parts";
import type { Machine } from "../machines/node";
import { useSiteChange } from "../policy/change";

const STATES = [
  ["alive", "alive: jobs may run there"],
  ["absent", "absent: known, but not to be used"],
  ["suspected", "suspected: no new jobs until it is heard of"],
  ["dead", "dead: it does not come back by itself"],
] as const;

const LONGEST_REASON = 200;

export function Actions({ node }: { node: Machine }): ReactNode {
  const { data } = useQuery({ queryKey: ["site", "hosts"], queryFn: ({ signal }) => get<Records>("/hosts", {}, signal) });
  const { change, busy, error } = useSiteChange();
  const [asking, setAsking] = useState<"" | "drain" | "state">("");
  const [state, setState] = useState("alive");
  const [reason, setReason] = useState("");
  if (!data) return null;
  // A machine without a runner shows as absent; its recorded state may differ.
  const written = String((data.records[node.host] as { state?: string } | undefined)?.state ?? "alive");
  const close = (): void => setAsking("");
  const ask = (what: "drain" | "state"): void => {
    setState(written);
    setReason("");
    setAsking(what);
  };

  // The earlier reason no longer applies.
  const write = (more: Record<string, unknown>, said: string, done?: () => void): void => {
    const before = (data.records[node.host] ?? {}) as Record<string, unknown>;
    const value = { ...before, reason: reason.trim(), ...more };
    change({ changes: [{ kind: "host", name: node.host, value }], base: data.version, said }, done);
  };
  const why = <TextField label="Reason" hint="For those who look at it or wait for it" value={reason} change={setReason} maxLength={LONGEST_REASON} />;
  return (
    <>
      {node.drain ? (
        <Button icon="running" disabled={busy} onClick={() => write({ drain: false, reason: "" }, `${node.host} takes new jobs again`)}>Undrain</Button>
      ) : (
        <Button icon="held" disabled={busy} onClick={() => ask("drain")}>Drain…</Button>
      )}
      <Button icon="edit" disabled={busy} onClick={() => ask("state")}>State…</Button>
      {error && !asking ? <Trouble error={error} /> : null}
      {asking === "drain" ? (
        <Dialog title={`Drain ${node.host}`} close={close}>
          <p className="muted">It starts no new jobs. Those that run there go on.</p>
          {why}
          {error ? <Trouble error={error} /> : null}
          <div className="actions">
            <Button kind="ghost" onClick={close}>Cancel</Button>
            <Button kind="primary" disabled={busy} onClick={() => write({ drain: true }, `${node.host} starts no new jobs; running ones go on`, close)}>Drain</Button>
          </div>
        </Dialog>
      ) : null}
      {asking === "state" ? (
        <Dialog title={`State of ${node.host}`} close={close}>
          <ChoiceField label="State" value={state} change={setState} options={STATES} />
          {state !== "alive" ? why : null}
          {state !== "alive" && node.jobs.length ? (
            <p className="muted">Jobs run there now. {state === "suspected" ? "They go on, but the machine gets no others." : "They end there, and their retries decide."}</p>
          ) : null}
          {error ? <Trouble error={error} /> : null}
          <div className="actions">
            <Button kind="ghost" onClick={close}>Cancel</Button>
            <Button kind="primary" disabled={busy || state === written}
              onClick={() => write({ state, by: "", why: "" }, `${node.host} is ${state} now`, close)}>
              Change
            </Button>
          </div>
        </Dialog>
      ) : null}
    </>
  );
}
