/** A chart: made once, given new options when they change, redrawn when the theme or its size changes. */

import type { EChartsCoreOption, EChartsType } from "echarts/core";
import { type ReactNode, useEffect, useRef } from "react";
import { useTheme } from "../theme";
import { echarts } from "./echarts";

export function Chart({ options, height, label, onReady }: {
  options: () => EChartsCoreOption; height: number; label: string; onReady?: (chart: EChartsType) => void;
}): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<EChartsType | null>(null);
  const theme = useTheme();

  useEffect(() => {
    if (!place.current) return;
    const made = echarts.init(place.current, null, { renderer: "canvas" });
    chart.current = made;
    onReady?.(made);
    const watch = new ResizeObserver(() => made.resize());
    watch.observe(place.current);
    return () => {
      watch.disconnect();
      made.dispose();
      chart.current = null;
    };
  }, []);

  useEffect(() => {
    chart.current?.setOption(options(), { notMerge: true, lazyUpdate: true });
  }, [options, theme]);

  return <div ref={place} role="img" aria-label={label} style={{ height }} />;
}
