/** Limits: how much of each is in use, and how many jobs wait for it. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { get } from "../../api/client";
import type { LimitView } from "../../api/types";
import { byName, count, plural } from "../../format";
import { Link } from "../../router";
import { Icon } from "../../ui/icons";
import { Button, Card, Command, Empty, Skeleton, Trouble } from "../../ui/parts";
import { Meter } from "../../ui/sheet";
import { LimitDialog } from "./limit_dialog";

const tone = (used: number, capacity: number | null): "run" | "warn" | "bad" =>
  capacity === null ? "run" : used > capacity ? "bad" : used >= capacity ? "warn" : "run";

function Bar({ limit }: { limit: LimitView }): ReactNode {
  if (limit.scope === "host") return <span className="muted">per machine</span>;
  const words = limit.capacity === null ? `${count(limit.used)} in use, no limit` : `${count(limit.used)} of ${count(limit.capacity)}`;
  return (
    <div className="use">
      <Meter part={limit.used} whole={limit.capacity} label={limit.name} text={words} tone={tone(limit.used, limit.capacity)} />
      <span className="num">{words}</span>
    </div>
  );
}

function Row({ limit, edit }: { limit: LimitView; edit: ((host: string) => void) | null }): ReactNode {
  const hosts = Object.entries(limit.hosts);
  return (
    <>
      <tr>
        <td>{limit.array === null ? <b>{limit.name}</b> : <b title={limit.name}>array <Link to={`/jobs/${limit.array}`}>{limit.array}</Link></b>} {limit.exclusive ? <span className="badge tone-odd"><Icon name="held" size={12} />exclusive now</span> : null}</td>
        <td className="bar-cell"><Bar limit={limit} /></td>
        <td className="right">{limit.waiting ? <span className="badge tone-warn">{plural(limit.waiting, "job")}</span> : <span className="faint">0</span>}</td>
        <td className="nowrap">{limit.window ? <>{limit.window} <span className={`badge tone-${limit.open ? "good" : "idle"}`}>{limit.open ? "open" : "closed"}</span></> : <span className="faint">always</span>}</td>
        {edit ? <td className="acts"><Button small kind="ghost" icon="edit" aria-label={`Change ${limit.name}`} onClick={() => edit("")} /></td> : null}
      </tr>
      {hosts.map(([host, part]) => (
        <tr key={host} className="part">
          <td>on {host}</td>
          <td className="bar-cell">
            <div className="use">
              <Meter part={part["used"] ?? 0} whole={part["capacity"] ?? 0} label={`${limit.name} on ${host}`} tone={tone(part["used"] ?? 0, part["capacity"] ?? 0)} />
              <span className="num">{count(part["used"] ?? 0)} of {count(part["capacity"] ?? 0)}</span>
            </div>
          </td>
          <td /><td />
          {edit ? <td className="acts"><Button small kind="ghost" icon="edit" aria-label={`Change ${limit.name} on ${host}`} onClick={() => edit(host)} /></td> : null}
        </tr>
      ))}
    </>
  );
}

export function Limits({ admin }: { admin: boolean }): ReactNode {
  const { data, error } = useQuery({ queryKey: ["limits"], queryFn: ({ signal }) => get<LimitView[]>("/limits", {}, signal) });
  const [editing, setEditing] = useState<{ limit: LimitView | null; host: string } | null>(null);
  const add = admin ? <Button small icon="plus" onClick={() => setEditing({ limit: null, host: "" })}>New limit</Button> : null;
  if (error && !data) return <Trouble error={error} />;
  if (!data) return <Skeleton lines={5} />;
  return (
    <Card title="Limits" aside={add}>
      {data.length === 0 ? (
        <Empty title="No limit yet" icon="limits">
          <p>A limit lets so many jobs at once use something, such as licences.</p>
          <Command text="rota limit licence:5" />
        </Empty>
      ) : (
        <div className="sheet-scroll">
          <table className="sheet stacked">
            <thead><tr><th>Limit</th><th>In use</th><th className="right">Waiting</th><th>Hours</th>{admin ? <th><span className="hidden">Change</span></th> : null}</tr></thead>
            <tbody>
              {[...data].sort((a, b) => byName(a.name, b.name)).map((limit) => (
                <Row key={limit.name} limit={limit} edit={admin ? (host) => setEditing({ limit, host }) : null} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {editing ? <LimitDialog {...editing} close={() => setEditing(null)} /> : null}
    </Card>
  );
}
