/** The policy of the site: limits, queues, shares, quotas, the calendar and admission rules. */

import type { ReactNode } from "react";
import { Link, useAddress } from "../router";
import { useAdmin } from "../session";
import { PageHead } from "../ui/sheet";
import { Calendars } from "./policy/calendars";
import { Limits } from "./policy/limits";
import { Queues } from "./policy/queues";
import { Quotas } from "./policy/quotas";
import { Rules } from "./policy/rules";
import { Shares } from "./policy/shares";
import "./policy/policy.css";

const TABS = {
  limits: { name: "Limits", Part: Limits },
  queues: { name: "Queues", Part: Queues },
  shares: { name: "Shares", Part: Shares },
  quotas: { name: "Quotas", Part: Quotas },
  calendars: { name: "Calendar", Part: Calendars },
  rules: { name: "Rules", Part: Rules },
} as const;

const isTab = (word: string): word is keyof typeof TABS => word in TABS;

export default function Policy(): ReactNode {
  const admin = useAdmin();
  const asked = useAddress().query.get("tab") ?? "limits";
  const tab = isTab(asked) ? asked : "limits";
  const { Part } = TABS[tab];
  return (
    <div className="policy">
      <PageHead title="Policy" about={admin ? "Changes hold at once and for everybody." : "What holds here. Administrators can change it."} />
      <nav className="tabs" aria-label="Policy">
        {Object.entries(TABS).map(([key, { name }]) => (
          <Link key={key} to={key === "limits" ? "/policy" : `/policy?tab=${key}`} aria-current={key === tab ? "page" : undefined}>{name}</Link>
        ))}
      </nav>
      <Part admin={admin} />
    </div>
  );
}
