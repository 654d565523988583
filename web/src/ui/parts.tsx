/** The small parts that every page is made of. */

import { type ButtonHTMLAttributes, type ReactNode, useState } from "react";
import type { ApiError } from "../api/client";
import { percent } from "../format";
import { tone, STATES } from "../states";
import { Icon, type IconName, STATE_ICONS } from "./icons";
import "./parts.css";

export function StateBadge({ state }: { state: string }): ReactNode {
  return (
    <span className={`badge tone-${tone(state)}`}>
      <Icon name={STATE_ICONS[state] ?? "ready"} size={12} />
      {state}
    </span>
  );
}

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  icon?: IconName; kind?: "plain" | "primary" | "danger" | "ghost"; small?: boolean;
};

export function Button({ icon, kind = "plain", small = false, children, className = "", ...rest }: ButtonProps): ReactNode {
  return (
    <button type="button" className={`button ${kind} ${small ? "small" : ""} ${className}`} {...rest}>
      {icon ? <Icon name={icon} size={small ? 14 : 16} /> : null}
      {children}
    </button>
  );
}

export function Card({ title, aside, children, className = "" }: {
  title?: ReactNode; aside?: ReactNode; children: ReactNode; className?: string;
}): ReactNode {
  return (
    <section className={`card ${className}`}>
      {title === undefined ? null : (
        <header>
          <h2>{title}</h2>
          {aside}
        </header>
      )}
      {children}
    </section>
  );
}

/** How a group of jobs is doing: done, failed, running and waiting as parts of one bar. */
export function Progress({ counts, label }: { counts: Record<string, number>; label: string }): ReactNode {
  const total = Object.values(counts).reduce((sum, n) => sum + n, 0);
  const done = (counts["complete"] ?? 0) + (counts["failed"] ?? 0) + (counts["cancelled"] ?? 0);
  const order = ["complete", "failed", "cancelled", ...STATES.filter((s) => !["complete", "failed", "cancelled"].includes(s))];
  return (
    <div className="progress" role="progressbar" aria-label={label} aria-valuemin={0} aria-valuemax={total} aria-valuenow={done}
      aria-valuetext={`${percent(done, total)} done`}>
      {order.map((state) => {
        const n = counts[state] ?? 0;
        return n ? <i key={state} className={`fill-${tone(state)} ${state}`} style={{ flexGrow: n }} title={`${n} ${state}`} /> : null;
      })}
    </div>
  );
}

/** A command to type, with a copy button. */
export function Command({ text }: { text: string }): ReactNode {
  const [copied, setCopied] = useState(false);
  const copy = (): void => {
    void navigator.clipboard?.writeText(text).then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    });
  };
  return (
    <span className="command">
      <code>{text}</code>
      <button type="button" onClick={copy} aria-label={copied ? "Copied" : `Copy: ${text}`}>
        <Icon name={copied ? "complete" : "copy"} size={14} />
      </button>
    </span>
  );
}

export function Empty({ title, children, icon = "jobs" }: { title: string; children?: ReactNode; icon?: IconName }): ReactNode {
  return (
    <div className="empty">
      <Icon name={icon} size={28} />
      <h2>{title}</h2>
      <div className="muted">{children}</div>
    </div>
  );
}

export function Trouble({ error }: { error: Error }): ReactNode {
  return (
    <div className="trouble" role="alert">
      <Icon name="odd" />
      <div>
        <strong>{error.message}</strong>
        {"hint" in error && error.hint ? <p className="muted">{(error as ApiError).hint}</p> : null}
      </div>
    </div>
  );
}

export function Skeleton({ lines = 3 }: { lines?: number }): ReactNode {
  return (
    <div className="skeleton" role="group" aria-busy="true" aria-label="Loading">
      {Array.from({ length: lines }, (_, at) => (
        <i key={at} />
      ))}
    </div>
  );
}
