/** The calendar: when which rule sets of quotas apply. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { get } from "../../api/client";
import type { Records } from "../../api/types";
import { plural } from "../../format";
import { Button, Card, Command, Empty, Skeleton, Trouble } from "../../ui/parts";
import { type Period, PeriodDialog } from "./calendar_dialog";
import { Removal } from "./editor";
import type { Quota } from "./quota_dialog";
import { WeekPicture } from "./week_picture";

const when = (each: Period): string => each.period || `${(each.from ?? "").replace("T", " ")} – ${(each.to ?? "").replace("T", " ")}`;

type Asking = { what: "edit" | "remove"; name: string; period: Period } | { what: "new" };

export function Calendars({ admin }: { admin: boolean }): ReactNode {
  const { data, error } = useQuery({ queryKey: ["site", "calendars"], queryFn: ({ signal }) => get<Records>("/calendars", {}, signal) });
  const quotas = useQuery({ queryKey: ["site", "quotas"], queryFn: ({ signal }) => get<Records>("/quotas", {}, signal) });
  const [asking, setAsking] = useState<Asking | null>(null);
  const close = (): void => setAsking(null);
  if (error && !data) return <Trouble error={error} />;
  if (!data) return <Skeleton lines={5} />;
  const rows = Object.entries(data.records) as [string, Period][];
  const weekly = rows.flatMap(([, { period, set }]) => (period ? [{ period, set }] : []));
  const members = (set: string): number => Object.values(quotas.data?.records ?? {}).filter((each) => (each as Quota).set === set).length;
  return (
    <Card title="Calendar" aside={admin ? <Button small icon="plus" onClick={() => setAsking({ what: "new" })}>New period</Button> : null}>
      <p className="muted explain">Quotas of a rule set hold while it applies, beside those that hold always. While a one-off period lasts, no weekly one applies. Hours are the manager’s.</p>
      {rows.length === 0 ? (
        <Empty title="No period" icon="ready"><p>Let a rule set apply at weekly hours:</p><Command text={'rota calendar add "08:00-19:00 mon-fri" day'} /></Empty>
      ) : (
        <>
          {weekly.length ? <WeekPicture periods={weekly} /> : null}
          <div className="sheet-scroll">
            <table className="sheet">
              <thead><tr><th>When</th><th>How often</th><th>Rule set</th><th className="right">Quotas</th>{admin ? <th><span className="hidden">Change</span></th> : null}</tr></thead>
              <tbody>
                {rows.map(([name, period]) => (
                  <tr key={name}>
                    <td><b>{when(period)}</b>{period.description ? <> <span className="muted">{period.description}</span></> : null}</td>
                    <td>{period.period ? "every week" : "once"}</td>
                    <td><span className="tag">{period.set}</span></td>
                    <td className="right">{members(period.set) ? plural(members(period.set), "quota") : <span className="badge tone-warn">none: limits nothing</span>}</td>
                    {admin ? (
                      <td className="acts">
                        <Button small kind="ghost" icon="edit" aria-label={`Change period ${name}`} onClick={() => setAsking({ what: "edit", name, period })} />
                        <Button small kind="ghost" icon="trash" aria-label={`Remove period ${name}`} onClick={() => setAsking({ what: "remove", name, period })} />
                      </td>
                    ) : null}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
      {asking?.what === "new" ? <PeriodDialog name={null} period={null} base={data.version} close={close} /> : null}
      {asking?.what === "edit" ? <PeriodDialog name={asking.name} period={asking.period} base={data.version} close={close} /> : null}
      {asking?.what === "remove" ? (
        <Removal title={`Remove ${asking.name}?`} close={close}
          make={() => ({ changes: [{ kind: "calendar", name: asking.name, value: null }], base: data.version, said: `${asking.name}: removed` })} />
      ) : null}
    </Card>
  );
}
