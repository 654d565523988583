/** Queues in the order in which they are planned. */

import { useQueries, useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { get } from "../../api/client";
import type { QueueView, QueuesView, StatusView } from "../../api/types";
import { count } from "../../format";
import { Link } from "../../router";
import { ACTIVE, WAITING, sum } from "../../states";
import { Button, Card, Skeleton, Trouble } from "../../ui/parts";
import { addressOf } from "../jobs/filter";
import { Removal } from "./editor";
import { QueueDialog } from "./queue_dialog";
import { time } from "./words";

type Asking = { what: "edit"; queue: QueueView | null } | { what: "remove"; queue: QueueView };

/** The unfinished jobs of each queue, by state. */
function useJobs(queues: QueueView[]): (Record<string, number> | undefined)[] {
  return useQueries({
    queries: queues.map(({ name }) => ({
      queryKey: ["queues", name],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        get<StatusView>("/status", { select: [...ACTIVE, ...WAITING].map((state) => `queue=${name},state=${state}`) }, signal),
    })),
  }).map(({ data }) => data?.counts);
}

function Jobs({ counts, of, name }: { counts: Record<string, number> | undefined; of: readonly string[]; name: string }): ReactNode {
  if (!counts) return null;
  const number = sum(counts, of);
  return number ? <Link to={addressOf({ queue: name, state: of.join(",") })}>{count(number)}</Link> : <span className="faint">0</span>;
}

export function Queues({ admin }: { admin: boolean }): ReactNode {
  const { data, error } = useQuery({ queryKey: ["site", "queues"], queryFn: ({ signal }) => get<QueuesView>("/queues", {}, signal) });
  const [asking, setAsking] = useState<Asking | null>(null);
  const close = (): void => setAsking(null);
  const jobs = useJobs(data?.queues ?? []);
  if (error && !data) return <Trouble error={error} />;
  if (!data) return <Skeleton lines={5} />;
  return (
    <Card title="Queues" aside={admin ? <Button small icon="plus" onClick={() => setAsking({ what: "edit", queue: null })}>New queue</Button> : null}>
      <div className="sheet-scroll">
        <table className="sheet tight">
          <thead>
            <tr><th>Queue</th><th className="right">Running</th><th className="right">Waiting</th><th className="right">Priority</th><th>Order</th><th>Backfill</th><th>Walltime</th><th>Longest wait</th><th>For</th><th>Shares</th>{admin ? <th><span className="hidden">Change</span></th> : null}</tr>
          </thead>
          <tbody>
            {data.queues.map((queue, at) => (
              <tr key={queue.name}>
                <td className="nowrap"><Link to={addressOf({ queue: queue.name })}><b>{queue.name}</b></Link>{queue.closed ? <> <span className="tag" title={queue.closed_reason || "New jobs are refused; those in it go on."}>closed</span></> : null}{queue.built_in ? <small className="muted below">built in</small> : null}</td>
                <td className="right num"><Jobs counts={jobs[at]} of={ACTIVE} name={queue.name} /></td>
                <td className="right num"><Jobs counts={jobs[at]} of={WAITING} name={queue.name} /></td>
                <td className="right">{queue.priority}</td>
                <td>{queue.order}</td>
                <td>{queue.backfill}</td>
                <td className="nowrap">{queue.walltime_s === null ? <span className="faint">none</span> : time(queue.walltime_s)}</td>
                <td className="nowrap">{time(queue.max_wait_s)}</td>
                <td className="nowrap">
                  {queue.admins_only ? <span title="Only administrators may name it; rules may put jobs of others into it.">admins</span> : "all"}
                  {queue.max_priority === null ? null : <small className="muted below" title="Jobs of users have no higher priority.">priority ≤ {queue.max_priority}</small>}
                </td>
                <td><div className="tags">{Object.entries(queue.shares).map(([who, share]) => <span key={who} className="tag">{who} {share}</span>)}</div></td>
                {admin ? (
                  <td className="acts">
                    <Button small kind="ghost" icon="edit" aria-label={`Change queue ${queue.name}`} onClick={() => setAsking({ what: "edit", queue })} />
                    {queue.built_in && queue.record === null ? null : (
                      <Button small kind="ghost" icon={queue.built_in ? "reset" : "trash"} onClick={() => setAsking({ what: "remove", queue })}
                        aria-label={queue.built_in ? `Reset queue ${queue.name}` : `Remove queue ${queue.name}`} />
                    )}
                  </td>
                ) : null}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {asking?.what === "edit" ? <QueueDialog queue={asking.queue} names={data.queues.map((each) => each.name)} base={data.version} close={close} /> : null}
      {asking?.what === "remove" ? (
        <Removal title={asking.queue.built_in ? `Make queue ${asking.queue.name} what it was?` : `Remove queue ${asking.queue.name}?`} close={close} does={asking.queue.built_in ? "Reset" : "Remove"}
          make={() => ({ changes: [{ kind: "queue", name: asking.queue.name, value: null }], base: data.version, said: `${asking.queue.name}: ${asking.queue.built_in ? "as it was" : "removed"}` })}>
          <p className="muted">{asking.queue.built_in ? "Its own values are dropped; those that every site begins with hold again." : "It must be empty: no job may wait or run in it."}</p>
        </Removal>
      ) : null}
    </Card>
  );
}
