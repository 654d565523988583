/** The machines: their capacity and use, and which need attention. */

import { type ReactNode, useDeferredValue, useMemo } from "react";
import { ApiError } from "../api/client";
import { count, percent, plural, size } from "../format";
import { useParam } from "../router";
import { Filter, Pick, Segments } from "../ui/form";
import { Command, Empty, Skeleton, Trouble } from "../ui/parts";
import { PageHead } from "../ui/sheet";
import { KINDS, type Machine, chosen, mark, useMachines } from "./machines/node";
import { keysOf } from "./machines/grouped";
import { Lab } from "./machines/lab";
import { UsagePlot } from "./machines/usage_plot";
import { Wall } from "./machines/wall";
import "./machines/machines.css";

const SORTS = [["name", "By name"], ["cores", "Busiest first"], ["memory", "Fullest memory"], ["jobs", "Most jobs"], ["size", "Most cores"]] as const;

const VIEWS = [["wall", "Wall"], ["lab", "Lab"], ["usage", "Usage"]] as const;

/** Drained and closed machines are no capacity, except for what their jobs still hold; cores are counted the same way. */
const memory = (node: Machine): number => (node.drain || !node.usable ? node.mem_in_use : (node.mem_bytes ?? 0));

function summary(nodes: Machine[]): string {
  const here = nodes.filter((node) => node.connected && node.state === "alive");
  const total = (of: (node: Machine) => number): number => here.reduce((sum, node) => sum + of(node), 0);
  const cores = total((node) => node.capacity_cores); // drained and closed machines are no capacity
  const used = total((node) => node.cores_in_use);
  return [
    plural(nodes.length, "machine"),
    `${count(Math.round(used))} of ${plural(cores, "core")} in use (${percent(used, cores)})`,
    `${size(total((node) => node.mem_in_use))} of ${size(total(memory))} memory`,
  ].join(" · ");
}

function kinds(nodes: Machine[]): [string, string][] {
  const marks = new Map<string, number>();
  for (const node of nodes) marks.set(mark(node).name, (marks.get(mark(node).name) ?? 0) + 1);
  const number = (kind: string): number => (KINDS[kind] ?? []).reduce((sum, name) => sum + (marks.get(name) ?? 0), 0);
  const names = { working: "Working", idle: "Idle", drained: "Drained", asleep: "Asleep", manual: "Manual", broken: "Broken", gone: "Not there" };
  // Not every site has machines that people use by hand or that need repair.
  const shown = Object.entries(names).filter(([kind]) => (kind !== "manual" && kind !== "broken") || number(kind) > 0);
  return [["", `All ${count(nodes.length)}`], ...shown.map(([kind, name]): [string, string] => [kind, `${name} ${count(number(kind))}`])];
}

export default function Machines(): ReactNode {
  const { data, error } = useMachines();
  const [words, setWords] = useParam("q");
  const [kind, setKind] = useParam("show");
  const [order, setOrder] = useParam("sort", "name");
  const [view, setView] = useParam("view", "wall");
  const [by, setBy] = useParam("by", "group");
  const late = useDeferredValue(words);
  const found = useMemo(() => chosen(data ?? [], late, kind, order), [data, late, kind, order]);

  if (error && !data) {
    if (error instanceof ApiError && error.status === 404)
      return <Empty title="This manager does not tell about machines" icon="machines">Its version is older than this page.</Empty>;
    return <Trouble error={error} />;
  }
  if (!data) return <Skeleton lines={8} />;
  if (data.length === 0)
    return (
      <>
        <PageHead title="Machines" />
        <Empty title="No machine yet" icon="machines">
          <p>Jobs run on this machine as soon as there are some. Add others with:</p>
          <Command text="rota node add n[1-8]" />
        </Empty>
      </>
    );
  const views = <Segments label="View" value={view} change={setView} options={VIEWS} />;
  if (view === "usage")
    return (
      <>
        <PageHead title="Machines" about="How they spent their time">{views}</PageHead>
        <UsagePlot nodes={data} />
      </>
    );
  return (
    <>
      <PageHead title="Machines" about={summary(data)}>
        {views}
        <Segments label="Which machines" value={kind} change={setKind} options={kinds(data)} />
        <Filter label="Name or property=value" value={words} change={setWords} />
        {view === "lab"
          ? <Pick label="Group by" value={by} change={setBy} options={keysOf(data).map((key) => [key, `By ${key}`])} />
          : <Pick label="Order" value={order} change={setOrder} options={SORTS} />}
      </PageHead>
      {found.length === 0 ? <p className="no-match muted">No machine is like that.</p> : view === "lab" ? <Lab nodes={found} by={by} /> : <Wall nodes={found} />}
    </>
  );
}
