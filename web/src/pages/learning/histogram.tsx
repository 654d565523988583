/** A histogram of used amounts. */

import type { EChartsCoreOption } from "echarts/core";
import { type ReactNode, useCallback } from "react";
import type { BucketView } from "../../api/types";
import { Chart } from "../../charts/chart";
import { count, plural } from "../../format";
import { colour } from "../../theme";
import { Card } from "../../ui/parts";
import { type What, shown } from "./shown";

export function Histogram({ what, buckets }: { what: What; buckets: BucketView[] }): ReactNode {
  const make = useCallback((): EChartsCoreOption => ({
    animation: false,
    grid: { left: 40, right: 8, top: 8, bottom: 26 },
    xAxis: {
      type: "category", data: buckets.map(([low]) => shown(what, low)), axisTick: { show: false },
      axisLabel: { color: colour("text-2"), fontSize: 11, hideOverlap: true }, axisLine: { lineStyle: { color: colour("line-strong") } },
    },
    yAxis: { type: "value", minInterval: 1, splitNumber: 3, axisLabel: { color: colour("text-2"), fontSize: 11, formatter: count }, splitLine: { lineStyle: { color: colour("line") } } },
    tooltip: {
      trigger: "axis", renderMode: "richText", confine: true, axisPointer: { type: "shadow" }, backgroundColor: colour("raised"),
      borderColor: colour("line-strong"), textStyle: { color: colour("text"), fontSize: 12 },
      formatter: (items: { dataIndex: number }[]) => {
        const [low, high, number] = buckets[items[0]?.dataIndex ?? 0] ?? [0, 0, 0];
        return `${shown(what, low)} to ${shown(what, high)}: ${plural(number, "job")}`;
      },
    },
    series: [{ type: "bar", data: buckets.map(([, , number]) => number), barCategoryGap: "12%", itemStyle: { color: colour("accent"), borderRadius: [3, 3, 0, 0] } }],
  }), [buckets, what]);
  const name = { mem: "Memory", time: "Time", disk: "Disk" }[what];
  return (
    <Card title={`${name} used`}>
      {buckets.length ? <Chart options={make} height={160} label={`Histogram of ${name.toLowerCase()} that was used`} /> : <p className="muted chart-empty">Nothing was measured yet.</p>}
    </Card>
  );
}
