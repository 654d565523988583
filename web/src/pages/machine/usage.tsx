/** The share of the last week in which a machine was busy. */

import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { get } from "../../api/client";
import type { UsageView } from "../../api/types";
import { duration, percent } from "../../format";
import { Card } from "../../ui/parts";

const DAYS = 7;
const PARTS = [["busy_s", "busy", "run"], ["idle_s", "idle", "good"], ["down_s", "down", "bad"], ["asleep_s", "asleep", "idle"]] as const;

export function Usage({ host }: { host: string }): ReactNode {
  const { data } = useQuery({
    queryKey: ["usage", DAYS],
    queryFn: ({ signal }) => {
      const to = new Date();
      const from = new Date(to.getTime() - DAYS * 86_400_000);
      return get<UsageView>("/usage", { from: from.toISOString(), to: to.toISOString() }, signal);
    },
  });
  const found = data?.hosts.find((each) => each.host === host);
  if (!found) return null;
  const total = found.busy_s + found.idle_s + found.down_s + found.asleep_s;
  if (total <= 0) return null;
  return (
    <Card title={`Last ${DAYS} days`}>
      <div className="band" aria-hidden="true">
        {PARTS.map(([key, name, tone]) => found[key] > 0 ? <i key={name} className={`fill-${tone}`} style={{ flexGrow: found[key] }} /> : null)}
      </div>
      <ul className="legend">
        {PARTS.map(([key, name, tone]) => (
          <li key={name} title={duration(found[key])}><i className={`fill-${tone}`} />{name} <span className="muted num">{percent(found[key], total)}</span></li>
        ))}
      </ul>
    </Card>
  );
}
