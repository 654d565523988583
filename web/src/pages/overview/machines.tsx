/** The load of the machines: cores in use, in total and on each host. */

import type { ReactNode } from "react";
import type { ManagerView, StatusView } from "../../api/types";
import { byName, count, percent, size } from "../../format";
import { Link } from "../../router";
import { Card, Command } from "../../ui/parts";
import type { Load } from "./data";

/** Up to this many hosts are a list; more are squares, with the fullest hosts listed below. */
const SHOWN = 6;
const BUSIEST = 3;
const MOST = 2000;
const ROUND = 2 * Math.PI * 34;

function Ring({ part, whole }: { part: number; whole: number }): ReactNode {
  const full = whole > 0 ? Math.min(1, part / whole) : 0;
  return (
    <svg className="ov-ring" width={84} height={84} viewBox="0 0 84 84" role="img" aria-label={`${percent(part, whole)} of the cores are in use`}>
      <circle cx={42} cy={42} r={34} />
      {full > 0 ? <circle className="part" cx={42} cy={42} r={34} strokeDasharray={`${full * ROUND} ${ROUND}`} transform="rotate(-90 42 42)" /> : null}
      <text x={42} y={47} textAnchor="middle">{percent(part, whole)}</text>
    </svg>
  );
}

const share = ({ cores, cores_in_use: used }: Load): number => (cores > 0 ? Math.min(1, used / cores) : 0);

function Line({ load }: { load: Load }): ReactNode {
  const { host, connected, cores, cores_in_use: used, mem_bytes: mem, mem_in_use: taken } = load;
  const text = connected ? `${count(used)} of ${count(cores)} cores${mem ? `, ${size(taken)} of ${size(mem)}` : ""}` : "away";
  return (
    <li>
      <Link to={`/machines/${encodeURIComponent(host)}`} className="clip">{host}</Link>
      <span className="faint num">{text}</span>
      <meter min={0} max={1} value={share(load)} aria-label={`Cores in use on ${host}`} />
    </li>
  );
}

/** One square a host, the fuller the darker: a whole cluster at a glance. */
function Squares({ loads }: { loads: readonly Load[] }): ReactNode {
  const here = loads.filter((each) => each.connected).length;
  return (
    <div className="ov-squares" role="group" aria-label={`${here} of ${loads.length} hosts are connected`}>
      {loads.slice(0, MOST).map((load) => (
        <Link
          key={load.host} to={`/machines/${encodeURIComponent(load.host)}`} tabIndex={-1} className={load.connected ? "" : "away"}
          aria-label={load.host} title={`${load.host}: ${load.connected ? `${count(load.cores_in_use)} of ${count(load.cores)} cores in use` : "away"}`}
        >
          <i style={{ opacity: load.connected ? share(load) : 0 }} />
        </Link>
      ))}
    </div>
  );
}

export function Machines({ status, manager, loads }: {
  status: StatusView; manager: ManagerView | undefined; loads: readonly Load[] | undefined;
}): ReactNode {
  const { cores, cores_in_use: used } = status;
  const sorted = [...(loads ?? [])].sort((a, b) => Number(b.connected) - Number(a.connected) || share(b) - share(a) || byName(a.host, b.host));
  const runners = manager?.runners.filter((each) => each.connected).length ?? 0;
  const here = sorted.filter((each) => each.connected);
  return (
    <Card title="Machines" aside={<Link to="/machines">All machines</Link>} className="ov-machines">
      <div className="ov-load">
        <Ring part={used} whole={cores} />
        <dl>
          <div><dt>Cores in use</dt><dd className="num">{count(used)} of {count(cores)}</dd></div>
          <div><dt>Hosts</dt><dd className="num">{count(here.length)}{sorted.length > here.length ? ` of ${count(sorted.length)}` : ""}</dd></div>
          <div><dt>Disk free</dt><dd className="num">{size(manager?.disk_free_bytes)}</dd></div>
        </dl>
      </div>
      {manager && runners === 0 ? <p className="muted">No runner is connected: nothing can run. <Command text="rota doctor" /></p> : null}
      {sorted.length > SHOWN ? <Squares loads={sorted} /> : null}
      <ul>{(sorted.length > SHOWN ? here.slice(0, BUSIEST) : sorted).map((load) => <Line key={load.host} load={load} />)}</ul>
    </Card>
  );
}
