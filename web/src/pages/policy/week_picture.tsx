/** A week at a glance: which rule set applies when. */

import type { ReactNode } from "react";
import { DAYS, bands } from "./week";

const HOURS = [0, 6, 12, 18, 24];
const TONES = ["run", "odd", "good", "warn", "idle", "bad"] as const;

export function WeekPicture({ periods }: { periods: { period: string; set: string }[] }): ReactNode {
  const sets = [...new Set(periods.map((each) => each.set))];
  const tone = (set: string): string => TONES[sets.indexOf(set) % TONES.length] ?? "run";
  return (
    <figure className="week">
      <div className="grid" aria-hidden="true">
        {DAYS.map((name, day) => (
          <div key={name} className="day">
            <span>{name}</span>
            <div>
              {periods.flatMap(({ period, set }) => bands(period).filter((band) => band.day === day).map((band) => (
                <i key={`${period} ${set} ${band.from}`} className={`fill-${tone(set)}`} title={`${set}: ${period}`}
                  style={{ left: `${(band.from / 1440) * 100}%`, width: `${((band.to - band.from) / 1440) * 100}%` }} />
              )))}
            </div>
          </div>
        ))}
        <div className="day hours"><span /><div>{HOURS.map((hour) => <span key={hour} style={{ left: `${(hour / 24) * 100}%` }}>{hour}</span>)}</div></div>
      </div>
      <figcaption><ul className="legend">{sets.map((set) => <li key={set}><i className={`fill-${tone(set)}`} />{set}</li>)}</ul></figcaption>
    </figure>
  );
}
