/** What an administrator does with a machine: let it run empty, or say that it is gone. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { get } from "../../api/client";
import type { Records } from "../../api/types";
import { Dialog } from "../../ui/dialog";
import { ChoiceField } from "../../ui/form";
import { Button, Trouble } from "../../ui/parts";
import type { Machine } from "../machines/node";
import { useSiteChange } from "../policy/change";

const STATES = [
  ["alive", "alive: jobs may run there"],
  ["absent", "absent: known, but not to be used"],
  ["suspected", "suspected: no new jobs until it is heard of"],
  ["dead", "dead: it does not come back by itself"],
] as const;

export function Actions({ node }: { node: Machine }): ReactNode {
  const { data } = useQuery({ queryKey: ["site", "hosts"], queryFn: ({ signal }) => get<Records>("/hosts", {}, signal) });
  const { change, busy, error } = useSiteChange();
  const [asking, setAsking] = useState(false);
  const [state, setState] = useState("alive");
  if (!data) return null;
  // A machine whose runner is away is told as absent; what was written down may be something else.
  const written = String((data.records[node.host] as { state?: string } | undefined)?.state ?? "alive");

  const write = (more: Record<string, unknown>, said: string, done?: () => void): void => {
    const before = (data.records[node.host] ?? {}) as Record<string, unknown>;
    change({ changes: [{ kind: "host", name: node.host, value: { ...before, ...more } }], base: data.version, said }, done);
  };
  return (
    <>
      <Button icon={node.drain ? "running" : "held"} disabled={busy}
        onClick={() => write({ drain: !node.drain }, node.drain ? `${node.host} takes new jobs again` : `${node.host} starts no new jobs; running ones go on`)}>
        {node.drain ? "Undrain" : "Drain"}
      </Button>
      <Button icon="edit" disabled={busy} onClick={() => { setState(written); setAsking(true); }}>State…</Button>
      {error && !asking ? <Trouble error={error} /> : null}
      {asking ? (
        <Dialog title={`State of ${node.host}`} close={() => setAsking(false)}>
          <ChoiceField label="State" value={state} change={setState} options={STATES} />
          {state !== "alive" && node.jobs.length ? (
            <p className="muted">Jobs run there now. They are not killed, but the machine gets no others.</p>
          ) : null}
          {error ? <Trouble error={error} /> : null}
          <div className="actions">
            <Button kind="ghost" onClick={() => setAsking(false)}>Cancel</Button>
            <Button kind="primary" disabled={busy || state === written}
              onClick={() => write({ state }, `${node.host} is ${state} now`, () => setAsking(false))}>
              Change
            </Button>
          </div>
        </Dialog>
      ) : null}
    </>
  );
}
