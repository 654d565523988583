/** One machine: its capacity and use, running jobs, permitted use and past states. */

import type { ReactNode } from "react";
import { ApiError } from "../api/client";
import { useTitle } from "../frame";
import { ago, count, moment, percent, size } from "../format";
import { useNow } from "../now";
import { Link, usePlace } from "../router";
import { useAdmin } from "../session";
import { Icon } from "../ui/icons";
import { Card, Empty, Skeleton, Trouble } from "../ui/parts";
import { Figure, Meter, PageHead } from "../ui/sheet";
import { Actions } from "./machine/actions";
import { History } from "./machine/history";
import { Running } from "./machine/running";
import { Timeline } from "./machine/timeline";
import { Usage } from "./machine/usage";
import { Cores } from "./machines/cores";
import { type Machine, mark, useMachine } from "./machines/node";
import { MarkBadge } from "./machines/tile";
import "./machines/machines.css";
import "./machine/machine.css";

const TICK_MS = 5000;

function Figures({ node }: { node: Machine }): ReactNode {
  return (
    <Card>
      <Cores cores={node.cores} used={node.cores_in_use} columns={48} rows={6} />
      <dl className="figures">
        <Figure name="Cores in use" value={`${count(Math.round(node.cores_in_use * 100) / 100)} / ${count(node.cores)}`} more={percent(node.cores_in_use, node.cores)} />
        <Figure name="Memory given" value={size(node.mem_in_use)}
          more={<>of {size(node.mem_bytes)}<Meter part={node.mem_in_use} whole={node.mem_bytes} label="Memory" tone="good" /></>} />
        <Figure name="Disk" value={size(node.disk_bytes)} />
        <Figure name="GPUs" value={count(node.gpus)} />
      </dl>
    </Card>
  );
}

function About({ node, now }: { node: Machine; now: number }): ReactNode {
  const rows: [string, string][] = [
    ["State", node.state],
    ["Condition", node.condition],
    ["Usage", node.usage],
    ...(node.since ? [["Since", `${moment(node.since)} (${ago(node.since, now)})`] as [string, string]] : []),
    ...(node.manual_user ? [["Reserved by", node.manual_user + (node.manual_until ? `, until ${moment(node.manual_until)}` : "")] as [string, string]] : []),
    ...(node.kept_by ? [["Kept by", `job ${node.kept_by}` + (node.kept_until ? `, until ${moment(node.kept_until)}` : "")] as [string, string]] : []),
    ...(node.owner ? [["Owner", node.owner] as [string, string]] : []),
    ...(node.groups.length ? [["Groups", node.groups.join(", ")] as [string, string]] : []),
    ...(node.why ? [["Because", node.why] as [string, string]] : []),
    ["Runner", node.connected ? "connected" : "not connected"],
    ["New jobs", node.drain ? "no: drained" : node.usable ? "yes" : "no"],
    ...(node.runner ? [["Runner id", node.runner] as [string, string]] : []),
    ...(node.pid ? [["Process", String(node.pid)] as [string, string]] : []),
    ...(node.hours ? [["Hours", node.hours] as [string, string]] : []),
    ["Available until", node.available_until ? moment(node.available_until) : "no end"],
  ];
  return (
    <Card title="About">
      <dl className="pairs num">
        {rows.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
      </dl>
    </Card>
  );
}

function Properties({ node }: { node: Machine }): ReactNode {
  const found = Object.entries(node.properties);
  return (
    <Card title="Properties">
      {found.length === 0 ? <p className="muted">None was written down.</p> : (
        <dl className="pairs">
          {found.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd><Link to={`/machines?q=${encodeURIComponent(`${name}=${String(value)}`)}`}>{value === true ? "yes" : value === false ? "no" : String(value)}</Link></dd>
            </div>
          ))}
        </dl>
      )}
    </Card>
  );
}

function Limits({ node }: { node: Machine }): ReactNode {
  const found = Object.entries(node.limits);
  if (found.length === 0) return null;
  return (
    <Card title="Limits of this machine">
      <ul className="units">
        {found.map(([name, { capacity = 0, used = 0 }]) => (
          <li key={name}>
            <span><b>{name}</b><span className="muted num">{used} of {capacity}</span></span>
            <Meter part={used} whole={capacity} label={name} tone={used >= capacity ? "warn" : "run"} />
          </li>
        ))}
      </ul>
    </Card>
  );
}

export default function MachinePage(): ReactNode {
  const host = usePlace()["host"] ?? "";
  useTitle(host);
  const admin = useAdmin();
  const now = useNow(TICK_MS);
  const { data: node, error } = useMachine(host);
  const back = <Link to="/machines" className="machine-back"><Icon name="left" size={14} />Machines</Link>;

  if (error && !node)
    return <>{back}{error instanceof ApiError && error.status === 404
      ? <Empty title={`There is no machine ${host}`} icon="machines">It may have been removed.</Empty>
      : <Trouble error={error} />}</>;
  if (!node) return <Skeleton lines={8} />;
  return (
    <>
      {back}
      <PageHead title={<span className="machine-title">{node.host}<MarkBadge node={node} /></span>} about={mark(node).about}>
        {admin ? <Actions node={node} /> : null}
      </PageHead>
      <div className="machine-page">
        <div>
          <Figures node={node} />
          <Timeline host={node.host} history={node.history} now={now} />
          <Running ids={node.jobs} now={now} />
          <History history={node.history} now={now} />
        </div>
        <div>
          <About node={node} now={now} />
          <Usage host={node.host} />
          <Limits node={node} />
          <Properties node={node} />
        </div>
      </div>
    </>
  );
}
