/** Quotas: how much may be held at once, always or while a rule set of the calendar applies, and how much is held. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { get } from "../../api/client";
import type { QuotasView } from "../../api/types";
import { Button, Card, Command, Empty, Skeleton, Trouble } from "../../ui/parts";
import { Removal } from "./editor";
import { type Quota, QuotaDialog } from "./quota_dialog";
import { limited, QuotaRows } from "./quota_rows";

type Asking = { what: "edit" | "remove"; name: string; quota: Quota } | { what: "new" };

export function Quotas({ admin }: { admin: boolean }): ReactNode {
  const { data, error } = useQuery({ queryKey: ["quotas"], queryFn: ({ signal }) => get<QuotasView>("/quotas", {}, signal) });
  const [asking, setAsking] = useState<Asking | null>(null);
  const close = (): void => setAsking(null);
  if (error && !data) return <Trouble error={error} />;
  if (!data) return <Skeleton lines={5} />;
  const rows = (Object.entries(data.records) as [string, Quota][]).sort(([, a], [, b]) => (a.set ?? "").localeCompare(b.set ?? "") || a.rule.localeCompare(b.rule));
  const amounts = limited(rows.map(([, quota]) => quota));
  return (
    <Card title="Quotas" aside={admin ? <Button small icon="plus" onClick={() => setAsking({ what: "new" })}>New quota</Button> : null}>
      <p className="muted explain">Every rule that fits a job holds for it. “Each” counts one by one, “all together” as a whole.</p>
      {rows.length === 0 ? (
        <Empty title="No quota" icon="limits"><p>Nobody is held down. For at most 16 resources of each user:</p><Command text="rota quota set '*,*,*,/' 16" /></Empty>
      ) : (
        <div className="sheet-scroll">
          <table className="sheet">
            <thead>
              <tr><th>Whose jobs</th>{amounts.map(({ key, label }) => <th key={key}>{label}</th>)}<th>When</th>{admin ? <th><span className="hidden">Change</span></th> : null}</tr>
            </thead>
            <tbody>
              {rows.map(([name, quota]) => (
                <QuotaRows key={name} name={name} quota={quota} use={data.use[name]} amounts={amounts} acts={admin ? (
                  <td className="acts">
                    <Button small kind="ghost" icon="edit" aria-label={`Change quota ${name}`} onClick={() => setAsking({ what: "edit", name, quota })} />
                    <Button small kind="ghost" icon="trash" aria-label={`Remove quota ${name}`} onClick={() => setAsking({ what: "remove", name, quota })} />
                  </td>
                ) : null} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {asking?.what === "new" ? <QuotaDialog name={null} quota={null} base={data.version} close={close} /> : null}
      {asking?.what === "edit" ? <QuotaDialog name={asking.name} quota={asking.quota} base={data.version} close={close} /> : null}
      {asking?.what === "remove" ? (
        <Removal title={`Remove quota ${asking.name}?`} close={close}
          make={() => ({ changes: [{ kind: "quota", name: asking.name, value: null }], base: data.version, said: `${asking.name}: removed` })} />
      ) : null}
    </Card>
  );
}
