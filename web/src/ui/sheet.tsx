/** The head of a page, and the tables and figures below it. */

import type { ReactNode } from "react";
import "./sheet.css";

export function PageHead({ title, about, children }: { title: ReactNode; about?: ReactNode; children?: ReactNode }): ReactNode {
  return (
    <header className="page-head">
      <div>
        <h1>{title}</h1>
        {about ? <p className="muted num">{about}</p> : null}
      </div>
      {children ? <div className="tools">{children}</div> : null}
    </header>
  );
}

/** How much of something is in use. `whole` null: unlimited. */
export function Meter({ part, whole, label, text, tone = "run" }: {
  part: number; whole: number | null; label: string; text?: string; tone?: "run" | "warn" | "bad" | "good" | "idle";
}): ReactNode {
  const share = whole === null ? 0 : whole > 0 ? Math.min(1, part / whole) : part > 0 ? 1 : 0;
  return (
    <div className="meter" role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={whole ?? Math.max(part, 1)}
      aria-valuenow={Math.min(part, whole ?? part)} aria-valuetext={text ?? `${part} of ${whole ?? "any number"}`}>
      <i className={`fill-${tone}`} style={{ width: `${share * 100}%` }} />
    </div>
  );
}

export function Figure({ name, value, more }: { name: string; value: ReactNode; more?: ReactNode }): ReactNode {
  return (
    <div className="figure">
      <dt>{name}</dt>
      <dd className="num">{value}</dd>
      {more ? <dd className="muted num">{more}</dd> : null}
    </div>
  );
}
