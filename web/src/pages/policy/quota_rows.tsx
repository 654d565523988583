/** One quota in the table: whose jobs it covers, what they hold of each limit, and each holder that is counted separately. */

import type { ReactNode } from "react";
import type { QuotaHolder, QuotaUse } from "../../api/types";
import { count } from "../../format";
import { Meter } from "../../ui/sheet";
import type { Quota } from "./quota_dialog";

const FIELDS = ["queue", "project", "type", "user"];
/** The most holders that get a line of their own. */
const SHOWN = 5;

export const AMOUNTS = [
  { key: "resources", label: "Resources" },
  { key: "jobs", label: "Jobs" },
  { key: "resource_hours", label: "Resource-hours" },
] as const;

export type Amount = (typeof AMOUNTS)[number] & { at: number };

/** Which of the three amounts any rule limits. */
export const limited = (quotas: Quota[]): Amount[] =>
  AMOUNTS.map((each, at) => ({ ...each, at })).filter(({ at }) => quotas.some(({ limits }) => (limits[at] ?? -1) !== -1));

function Whose({ rule }: { rule: string }): ReactNode {
  const parts = rule.split(",").map((word, at) => ({ word, field: FIELDS[at] ?? "" })).filter(({ word }) => word !== "*");
  if (parts.length === 0) return <b>all jobs together</b>;
  return (
    <span className="tags whose">
      {parts.map(({ word, field }) => word === "/"
        ? <span key={field} className="tag">each {field}</span>
        : <span key={field}><span className="faint">{field}</span> <b>{word}</b></span>)}
    </span>
  );
}

/** The limit as written, if nothing is held of it. */
function Most({ value }: { value: number | string | undefined }): ReactNode {
  if (value === undefined || value === -1) return <span className="faint">any</span>;
  return typeof value === "number" ? count(value) : <code>{value}</code>;
}

const rounded = (value: number): number => Math.round(100 * value) / 100;

function Held({ amount, held, most, written, label }: {
  amount: Amount; held: number | null; most: number | null; written?: number | string | undefined; label: string;
}): ReactNode {
  if (held === null || most === null) return <span className="faint">{held ? `${count(rounded(held))} of any` : "any"}</span>;
  const words = `${count(rounded(held))} of ${count(most)}`;
  return (
    <div className="held">
      <span className="num">{words}{typeof written === "string" ? <> <code className="faint">{written}</code></> : null}</span>
      <Meter part={held} whole={most} label={`${amount.label} ${label}`} text={words} tone={held > most ? "bad" : held >= most ? "warn" : "run"} />
    </div>
  );
}

const called = ({ who }: QuotaHolder): string => Object.entries(who).map(([field, name]) => name || `no ${field}`).join(" · ");

export function QuotaRows({ name, quota, use, amounts, acts }: {
  name: string; quota: Quota; use: QuotaUse | undefined; amounts: Amount[]; acts: ReactNode;
}): ReactNode {
  const holders = use?.holders ?? [];
  const together = holders.find(({ who }) => Object.keys(who).length === 0);
  const each = together ? [] : holders.slice(0, SHOWN);
  const more = together ? 0 : holders.length - each.length + (use?.more ?? 0);
  return (
    <>
      <tr>
        <td><Whose rule={quota.rule} /></td>
        {amounts.map((amount) => (
          <td key={amount.key} className="nowrap">
            {together && use
              ? <Held amount={amount} held={together[amount.key]} most={use[amount.key]} written={quota.limits[amount.at]} label={`of ${name}`} />
              : <Most value={quota.limits[amount.at]} />}
          </td>
        ))}
        <td className="nowrap">
          {quota.set
            ? <><span className="tag">{quota.set}</span> <span className={`badge tone-${use?.applies ? "good" : "idle"}`}>{use?.applies ? "now" : "not now"}</span></>
            : <span className="faint">always</span>}
        </td>
        {acts}
      </tr>
      {each.map((holder) => (
        <tr key={called(holder)} className="part">
          <td>{called(holder)}</td>
          {amounts.map((amount) => (
            <td key={amount.key} className="nowrap">
              <Held amount={amount} held={holder[amount.key]} most={use?.[amount.key] ?? null} label={`of ${called(holder)}, ${name}`} />
            </td>
          ))}
          <td colSpan={acts ? 2 : 1} />
        </tr>
      ))}
      {more ? <tr className="part"><td colSpan={amounts.length + (acts ? 3 : 2)} className="faint">+{count(more)} more</td></tr> : null}
    </>
  );
}
