/** The time of machines as one band, and the names of its colours. */

import type { ReactNode } from "react";
import { duration, percent } from "../../format";
import { ABOUT, PARTS, type Part, type Seconds, whole } from "./parts";
import "../../charts/palette.css";
import "./parts.css";

export const told = (seconds: Seconds): string =>
  PARTS.filter((part) => seconds[part]).map((part) => `${part} ${percent(seconds[part] ?? 0, whole(seconds))}`).join(", ");

export function PartBand({ seconds, label }: { seconds: Seconds; label: string }): ReactNode {
  return (
    <div className="part-band" role="img" aria-label={`${label}: ${told(seconds) || "nothing is known"}`}>
      {PARTS.map((part) => seconds[part] ? (
        <i key={part} className={`part-${part}`} style={{ flexGrow: seconds[part] }} title={`${part}: ${duration(seconds[part])} (${percent(seconds[part] ?? 0, whole(seconds))})`} />
      ) : null)}
    </div>
  );
}

export function PartLegend({ parts, seconds }: { parts: readonly Part[]; seconds?: Seconds }): ReactNode {
  return (
    <ul className="part-legend">
      {parts.map((part) => (
        <li key={part} title={ABOUT[part]}>
          <i className={`part-${part}`} />{part}{seconds ? <span className="muted num"> {percent(seconds[part] ?? 0, whole(seconds))}</span> : null}
        </li>
      ))}
    </ul>
  );
}
