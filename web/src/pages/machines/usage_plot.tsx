/** How machines spent their time: stacked bars by day, and a band for each host, group or value of a property. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { EChartsCoreOption } from "echarts/core";
import { type ReactNode, useCallback, useMemo } from "react";
import { get } from "../../api/client";
import type { MachineUsageView } from "../../api/types";
import { Chart } from "../../charts/chart";
import { duration, percent, plural } from "../../format";
import { useNow } from "../../now";
import { useParam } from "../../router";
import { colour } from "../../theme";
import { Pick, Segments } from "../../ui/form";
import { Card, Skeleton, Trouble } from "../../ui/parts";
import { type Preset, ZONE, isPreset, rangeOf } from "../accounting/ranges";
import { valuesOf } from "./grouped";
import type { Machine } from "./node";
import { PartBand, PartLegend } from "./part_band";
import { COLOURS, PARTS, type Seconds, busyShare, byKey, byWindow, whole } from "./parts";
import "./usage_plot.css";

const EVERY_MS = 60_000;
const RANGES: [Preset, string][] = [["1d", "24 hours"], ["7d", "7 days"], ["30d", "30 days"], ["90d", "90 days"]];
const hour = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hour12: false });
const day = new Intl.DateTimeFormat("en", { month: "short", day: "numeric" });

function Bars({ windows, daily, label }: { windows: [at: number, seconds: Seconds][]; daily: boolean; label: string }): ReactNode {
  const options = useCallback((): EChartsCoreOption => ({
    animation: false,
    grid: { left: 48, right: 8, top: 12, bottom: 28 },
    xAxis: {
      type: "category", data: windows.map(([at]) => (daily ? day : hour).format(at)), axisTick: { show: false },
      axisLabel: { color: colour("text-2"), fontSize: 11, hideOverlap: true }, axisLine: { lineStyle: { color: colour("line-strong") } },
    },
    yAxis: { type: "value", min: 0, max: 100, interval: 25, axisLabel: { color: colour("text-2"), fontSize: 11, formatter: "{value} %" }, splitLine: { lineStyle: { color: colour("line") } } },
    tooltip: {
      trigger: "axis", renderMode: "richText", confine: true, axisPointer: { type: "shadow" }, backgroundColor: colour("raised"),
      borderColor: colour("line-strong"), textStyle: { color: colour("text"), fontSize: 12 },
      formatter: (items: { axisValue: string; dataIndex: number }[]) => {
        const seconds = windows[items[0]?.dataIndex ?? 0]?.[1] ?? {};
        const lines = PARTS.filter((part) => seconds[part]).map((part) => `${part}: ${duration(seconds[part])} (${percent(seconds[part] ?? 0, whole(seconds))})`);
        return [items[0]?.axisValue ?? "", ...lines].join("\n");
      },
    },
    series: PARTS.filter((part) => windows.some(([, seconds]) => seconds[part])).map((part) => ({
      name: part, type: "bar", stack: "time", barCategoryGap: "18%", itemStyle: { color: colour(COLOURS[part]) },
      data: windows.map(([, seconds]) => (whole(seconds) > 0 ? (100 * (seconds[part] ?? 0)) / whole(seconds) : 0)),
    })),
  }), [windows, daily]);
  return <Chart options={options} height={240} label={label} />;
}

const MOST_HOSTS = 500;

export function UsagePlot({ nodes }: { nodes: Machine[] }): ReactNode {
  const [word, setRange] = useParam("range", "7d");
  const [asked, setBy] = useParam("by", "host");
  const [key, setKey] = useParam("key");
  const keys = useMemo(() => ["host", "group", ...[...new Set(nodes.flatMap((node) => Object.keys(node.properties)))].sort()], [nodes]);
  const by = keys.includes(asked) ? asked : "host"; // the lab view can be grouped by more
  const now = Math.ceil(useNow(EVERY_MS) / EVERY_MS) * EVERY_MS; // the manager knows better when now is
  const range = rangeOf(isPreset(word) ? word : "7d", now);
  const from = new Date(range.from).toISOString();
  const to = new Date(Math.min(range.to, now)).toISOString();

  const chosen = useMemo(
    () => (key === "" ? [] : by === "host" ? [key] : nodes.filter((node) => valuesOf(node, by).includes(key === NONE ? "" : key)).map((node) => node.host)),
    [nodes, by, key],
  );
  const hosts = chosen.slice(0, MOST_HOSTS);
  const bars = useQuery({
    queryKey: ["usage", "bars", from, to, range.window, hosts.join(",")],
    queryFn: ({ signal }) => get<MachineUsageView>("/usage/machines", { from, to, by: "", window: range.window, zone: ZONE, host: hosts }, signal),
    placeholderData: keepPreviousData,
  });
  const sums = useQuery({
    queryKey: ["usage", "sums", from, to, by],
    queryFn: ({ signal }) => get<MachineUsageView>("/usage/machines", { from, to, by }, signal),
    placeholderData: keepPreviousData,
  });
  const windows = useMemo(() => byWindow(bars.data?.rows ?? [], bars.data?.edges ?? []), [bars.data]);
  const rows = useMemo(() => [...byKey(sums.data?.rows ?? [], Object.keys(sums.data?.machines ?? {}))], [sums.data]);
  const seen = PARTS.filter((part) => rows.some(([, seconds]) => seconds[part]) || windows.some(([, seconds]) => seconds[part]));
  const choose = (next: string): void => setKey(next === key ? "" : next);
  const title = key === "" ? "All machines" : key;

  return (
    <div className="stack usage-page">
      <div className="tools">
        <Segments label="Range" value={word} change={setRange} options={RANGES} />
        <Pick label="By" value={by} change={setBy} options={keys.map((each) => [each, `By ${each}`])} />
      </div>
      <Card title={title} aside={<PartLegend parts={seen} />}>
        {bars.error && !bars.data ? <Trouble error={bars.error} /> : bars.data
          ? <Bars windows={windows} daily={range.window === "day"} label={`How ${key === "" ? "all machines" : key} spent their time, by the ${range.window}`} />
          : <Skeleton lines={6} />}
      </Card>
      <Card title={`By ${by}`}>
        {sums.error && !sums.data ? <Trouble error={sums.error} /> : !sums.data ? <Skeleton lines={4} /> : (
          <table className="sheet usage-rows">
            <thead><tr><th>{by}</th><th className="right rare">Machines</th><th>Time</th><th className="right">Busy</th></tr></thead>
            <tbody>
              {rows.map(([name, seconds]) => {
                const share = busyShare(seconds);
                const shown = name || NONE;
                return (
                  <tr key={name}>
                    <td className="clip"><button type="button" className="usage-key" aria-pressed={key === shown} onClick={() => choose(shown)}>{shown}</button></td>
                    <td className="right rare num">{sums.data.machines[name] ?? 0}</td>
                    <td className="usage-band"><PartBand seconds={seconds} label={`${shown}, ${plural(sums.data.machines[name] ?? 1, "machine")}`} /></td>
                    <td className="right num nowrap">{share === null ? "–" : `${Math.round(100 * share)} %`}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        )}
      </Card>
    </div>
  );
}

/** The name of what has no group, or no such property. */
const NONE = "(none)";
