/** The last hour: how many jobs ended, and how long the started jobs had waited. */

import { type ReactNode, useMemo } from "react";
import { type Minute, ceiling, roundTime, total, waits } from "../../charts/minutes";
import { type Box, Plot } from "../../charts/plot";
import { count, duration } from "../../format";
import { Card } from "../../ui/parts";

const HEIGHT = 168;
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const ENDS = [["complete", "good"], ["failed", "bad"], ["cancelled", "idle"]] as const;

function Columns({ minutes, box }: { minutes: readonly Minute[]; box: Box }): ReactNode {
  return minutes.map((minute, at) => {
    let below = 0;
    return ENDS.map(([what, kind]) => {
      const value = minute[what];
      if (!value) return null;
      const y = box.y(below + value);
      const height = box.y(below) - y;
      below += value;
      return <rect key={`${at} ${what}`} className={kind} x={box.x(at) + 1} width={Math.max(1, box.step - 2)} y={y} height={Math.max(1, height)} rx={1.5} />;
    });
  });
}

export function Throughput({ minutes }: { minutes: readonly Minute[] }): ReactNode {
  const ended = minutes.map(({ complete, failed, cancelled }) => complete + failed + cancelled);
  const all = ended.reduce((sum, n) => sum + n, 0);
  const when = (at: number): string => clock.format(Date.parse(minutes[at]?.at ?? ""));
  return (
    <Card title="Jobs ended" aside={<span className="faint num">{count(all)} in the last hour</span>}>
      <Plot
        n={minutes.length} top={Math.max(2, ceiling(Math.max(...ended)))} height={HEIGHT} when={when} axis={(value) => count(Math.round(value * 10) / 10)}
        label={`Jobs ended in each minute of the last hour: ${total(minutes, "complete")} complete, ${total(minutes, "failed")} failed, ${total(minutes, "cancelled")} cancelled`}
        note={(at) => ENDS.map(([what]) => <span key={what}>{what}<b>{count(minutes[at]?.[what] ?? 0)}</b></span>)}
        draw={(box) => <Columns minutes={minutes} box={box} />}
      />
      {all === 0 ? <p className="ov-none faint">No job has ended in the last hour.</p> : null}
    </Card>
  );
}

/** An unbroken line through the minutes in which jobs started: between them the last value is the best guess. */
function Curve({ values, box }: { values: readonly (number | null)[]; box: Box }): ReactNode {
  const points = values.flatMap((value, at) => (value === null ? [] : [[box.x(at) + box.step / 2, box.y(value)] as const]));
  const first = points[0];
  const last = points.at(-1);
  if (!first || !last) return null;
  const path = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" L");
  return (
    <>
      <path className="area" d={`M${first[0].toFixed(1)},${box.y(0)} L${path} L${last[0].toFixed(1)},${box.y(0)} Z`} />
      <path className="curve" d={`M${path}`} />
      <circle className="dot" cx={last[0]} cy={last[1]} r={3} />
    </>
  );
}

export function WaitTimes({ minutes }: { minutes: readonly Minute[] }): ReactNode {
  const values = useMemo(() => waits(minutes), [minutes]);
  const largest = Math.max(0, ...values.map((value) => value ?? 0));
  const started = total(minutes, "started");
  const mean = started > 0 ? total(minutes, "wait_s") / started : null;
  const when = (at: number): string => clock.format(Date.parse(minutes[at]?.at ?? ""));
  return (
    <Card title="Wait before start" aside={<span className="faint num">{mean === null ? "" : `${duration(mean)} on average`}</span>}>
      <Plot
        n={minutes.length} top={roundTime(largest)} height={HEIGHT} when={when} axis={(value) => (value === 0 ? "0" : short(value))}
        label={mean === null ? "No job has started in the last hour" : `Jobs that started in the last hour had waited ${duration(mean)} on average`}
        note={(at) => (
          <>
            <span>waited<b>{duration(values[at] ?? null)}</b></span>
            <span>started<b>{count(minutes[at]?.started ?? 0)}</b></span>
          </>
        )}
        draw={(box) => <Curve values={values} box={box} />}
      />
      {started === 0 ? <p className="ov-none faint">No job has started in the last hour.</p> : null}
    </Card>
  );
}

/** A duration for an axis, in one unit. */
function short(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.round((seconds / 60) * 10) / 10} m`;
  return `${Math.round((seconds / 3600) * 10) / 10} h`;
}
