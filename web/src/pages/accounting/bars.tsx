/** Use over time: one bar per window, split by owner. */

import type { EChartsCoreOption } from "echarts/core";
import { type ReactNode, useCallback } from "react";
import { Chart } from "../../charts/chart";
import "../../charts/palette.css";
import { count } from "../../format";
import { colour } from "../../theme";
import { amount, plotted } from "./amounts";
import { type Measure, OTHERS, type Stack } from "./sums";

const colourOf = (name: string, place: number): string => (name === OTHERS ? "chart-rest" : `chart-${(place % COLOURS) + 1}`);

/** The number of colours in `palette.css`. */
const COLOURS = 8;

// Windows are in this browser's time zone, which the sums use too.
const hour = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hour12: false });
const day = new Intl.DateTimeFormat("en", { month: "short", day: "numeric" });

export function Bars({ made, measure, daily, label }: { made: Stack; measure: Measure; daily: boolean; label: string }): ReactNode {
  const options = useCallback((): EChartsCoreOption => ({
    animation: false,
    grid: { left: 56, right: 8, top: 12, bottom: 28 },
    xAxis: {
      type: "category", data: made.windows.map((at) => (daily ? day : hour).format(at)), axisTick: { show: false },
      axisLabel: { color: colour("text-2"), fontSize: 11, hideOverlap: true }, axisLine: { lineStyle: { color: colour("line-strong") } },
    },
    yAxis: { type: "value", splitNumber: 4, axisLabel: { color: colour("text-2"), fontSize: 11, formatter: (value: number) => (measure.endsWith("_s") ? `${count(value)} h` : count(value)) }, splitLine: { lineStyle: { color: colour("line") } } },
    tooltip: {
      trigger: "axis", renderMode: "richText", confine: true, axisPointer: { type: "shadow" }, backgroundColor: colour("raised"),
      borderColor: colour("line-strong"), textStyle: { color: colour("text"), fontSize: 12 },
      formatter: (items: { axisValue: string; seriesName: string; seriesIndex: number; dataIndex: number; value: number }[]) =>
        [items[0]?.axisValue ?? "", ...items.filter((each) => each.value > 0).reverse().map((each) => `${each.seriesName}: ${amount(measure, made.layers[each.seriesIndex]?.values[each.dataIndex] ?? 0)}`)].join("\n"),
    },
    series: made.layers.map(({ name, values }, place) => ({
      type: "bar", stack: "all", name, data: values.map((value) => plotted(measure, value)), barCategoryGap: "20%", barMaxWidth: 48, itemStyle: { color: colour(colourOf(name, place)) },
    })),
  }), [made, measure, daily]);
  return (
    <>
      <Chart options={options} height={280} label={label} />
      <ul className="account-legend">
        {made.layers.map(({ name }, place) => <li key={name}><i className={`tint-${colourOf(name, place)}`} /><span className="clip">{name}</span></li>)}
      </ul>
    </>
  );
}
