/** Given, or asked, against used: below the line a job used less, above it more. */

import type { EChartsCoreOption, EChartsType } from "echarts/core";
import { type ReactNode, useCallback, useMemo } from "react";
import { Chart } from "../../charts/chart";
import { moment, percent, size } from "../../format";
import { go } from "../../router";
import { colour } from "../../theme";
import { Card } from "../../ui/parts";
import { type Against, type Asked, type Dot, type Point, TIMES, dots, range, timeRange, used } from "./points";
import { brief, shown } from "./shown";

function tip(what: Asked, { x, y, point }: Dot): string {
  const [asked, given] = what === "mem" ? [point.asked_mem, point.given_mem] : [point.asked_time_s, point.given_time_s];
  const words = [
    `${point.job === null ? "a job of the past" : `job ${point.job}`}, ${moment(point.at)}`,
    `asked ${asked === null ? "–" : shown(what, asked)}, given ${shown(what, given ?? 0)}, used ${shown(what, y)} (${percent(y, x)})`,
    ...(point.input_bytes === null ? [] : [`input ${size(point.input_bytes)}`]), ...(point.ok ? [] : ["failed"]),
  ];
  return words.join("\n");
}

function options(what: Asked, against: Against, all: Dot[]): EChartsCoreOption {
  const [low, high] = what === "time" ? timeRange(all) : range(all, 2);
  const marks = what === "time" ? { customValues: TIMES.filter((each) => each >= low && each <= high) } : {};
  const text = colour("text-2");
  const axis = {
    type: "log", logBase: what === "time" ? 10 : 2, min: low, max: high,
    axisLabel: { ...marks, color: text, fontSize: 11, hideOverlap: true, formatter: (value: number) => (what === "mem" ? size(value) : brief(value)) },
    splitLine: { lineStyle: { color: colour("line") } }, axisLine: { lineStyle: { color: colour("line-strong") } }, axisTick: { ...marks, show: false },
    nameTextStyle: { color: text, fontSize: 12 }, nameLocation: "middle",
  };
  const series = (ok: boolean): EChartsCoreOption => ({
    type: "scatter", name: ok ? "done" : "failed", symbol: ok ? "circle" : "triangle", symbolSize: ok ? 7 : 9, clip: true, animation: false,
    itemStyle: { color: colour(ok ? "run" : "bad"), opacity: 0.55 }, emphasis: { itemStyle: { opacity: 1 } },
    data: all.filter((dot) => dot.point.ok === ok).map((dot) => ({ value: [dot.x, dot.y], dot })),
  });
  return {
    animation: false,
    grid: { left: 64, right: 16, top: 12, bottom: 48 },
    xAxis: { ...axis, name: against, nameGap: 30 },
    yAxis: { ...axis, name: "used", nameGap: 48 },
    tooltip: {
      trigger: "item", renderMode: "richText", confine: true, backgroundColor: colour("raised"), borderColor: colour("line-strong"),
      textStyle: { color: colour("text"), fontSize: 12 },
      formatter: ({ data }: { data: { dot?: Dot } }) => (data.dot ? tip(what, data.dot) : ""),
    },
    series: [
      {
        type: "line", data: [[low, low], [high, high]], symbol: "none", silent: true, tooltip: { show: false },
        lineStyle: { color: colour("text-3"), type: "dashed", width: 1 },
      },
      series(true), series(false),
    ],
  };
}

function open(chart: EChartsType): void {
  chart.on("click", (event) => {
    const dot = (event.data as { dot?: Dot } | null)?.dot;
    if (dot && dot.point.job !== null) go(`/jobs/${dot.point.job}`);
  });
}

export function Scatter({ what, against, points }: { what: Asked; against: Against; points: Point[] }): ReactNode {
  const all = useMemo(() => dots(points, what, against), [points, what, against]);
  const make = useCallback(() => options(what, against, all), [what, against, all]);
  const name = what === "mem" ? "Memory" : "Time";
  const part = used(all);
  return (
    <Card title={`${name}: ${against} and used`} aside={part === null ? null : <span className="muted num">{part < 0.005 ? "< 1" : Math.round(part * 100)} % of it used</span>}>
      {all.length === 0 ? <p className="muted chart-empty">{against === "asked" ? `No job that asked for ${name.toLowerCase()} has ended yet.` : `No job whose ${name.toLowerCase()} was measured has ended yet.`}</p> : (
        <>
          <Chart options={make} height={280} onReady={open} label={`${name} that ${all.length} jobs ${against === "asked" ? "asked for" : "were given"} and used`} />
          <ul className="learn-legend">
            <li><i className="dot" />done</li><li><i className="triangle" />failed</li><li><i className="dash" />{against} = used</li>
          </ul>
        </>
      )}
    </Card>
  );
}
