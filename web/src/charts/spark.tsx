/** A line without axes that shows a trend. */

import type { ReactNode } from "react";

export function Spark({ values }: { values: readonly number[] }): ReactNode {
  const top = Math.max(...values, 0);
  if (values.length < 2 || top <= 0) return <svg className="spark" aria-hidden="true" />;
  const points = values.map((value, at) => `${((at / (values.length - 1)) * 100).toFixed(2)},${(28 - (value / top) * 26).toFixed(2)}`);
  return (
    <svg className="spark" viewBox="0 0 100 30" preserveAspectRatio="none" aria-hidden="true">
      <path className="fill" d={`M0,30 L${points.join(" L")} L100,30 Z`} />
      <path className="line" d={`M${points.join(" L")}`} />
    </svg>
  );
}
