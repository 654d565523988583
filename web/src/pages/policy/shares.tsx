/** Fair share: the standing of users and projects in each queue ordered by it, and why. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { get } from "../../api/client";
import type { FairShareView, QueueSharesView, SharesView } from "../../api/types";
import { Button, Card, Command, Empty, Skeleton, Trouble } from "../../ui/parts";
import { FairShareDialog } from "./fair_share_dialog";
import { time } from "./words";

const part = (share: number): string => `${(100 * share).toFixed(1)} %`;
const hours = (seconds: number): string => `${(seconds / 3600).toFixed(seconds >= 36_000 ? 0 : 2)} h`;
const ORIGINS: Record<string, string> = { share: "its share", rest: "what shares leave", equal: "equal parts", projects: "by projects" };

/** Weights, half-life and window as text. */
const terms = (fair: FairShareView, project: number | string): string =>
  `Weights: project ${project}, used ${fair.used}, asked ${fair.asked} · half-life ${time(fair.half_life_s)} · ${fair.window_s === null ? "no window" : `window ${time(fair.window_s)}`}`;

function Standings({ found, fair }: { found: QueueSharesView; fair: FairShareView }): ReactNode {
  const projects = found.project_weight > 0 || found.projects.some((each) => each.target_by === "share");
  return (
    <Card title={`Queue ${found.queue}`}>
      <p className="muted explain">
        {found.order === "fifo" ? "Its order is fifo: nothing of this counts. " : `Order ${found.order}; whoever has the lowest karma goes first. `}
        {terms(fair, found.project_weight)}
      </p>
      {found.users.length === 0 ? <p className="muted">Nobody has used anything, or has jobs.</p> : (
        <div className="sheet-scroll">
          <table className="sheet">
            <thead><tr><th>User</th><th>Project</th><th className="right">Used</th><th className="right">Of all</th><th className="right">Target</th><th className="right">Karma</th><th>Why</th></tr></thead>
            <tbody>
              {found.users.map((each) => (
                <tr key={`${each.user} ${each.project}`}>
                  <td><b>{each.user}</b></td>
                  <td>{each.project || <span className="faint">none</span>}</td>
                  <td className="right num nowrap">{hours(each.used_s)}</td>
                  <td className="right num nowrap">{part(each.parts[1]?.share ?? 0)}</td>
                  <td className="right num nowrap">{part(each.target)}</td>
                  <td className="right num nowrap">{each.karma.toFixed(3)}</td>
                  <td className="why">{each.why}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {projects ? (
        <div className="sheet-scroll">
          <table className="sheet">
            <thead><tr><th>Project</th><th className="right">Used</th><th className="right">Of all</th><th className="right">Target</th><th>From</th></tr></thead>
            <tbody>
              {found.projects.map((each) => (
                <tr key={each.project}>
                  <td>{each.project || <span className="faint">none</span>}</td>
                  <td className="right num nowrap">{hours(each.used_s)}</td>
                  <td className="right num nowrap">{part(each.share)}</td>
                  <td className="right num nowrap">{part(each.target)}</td>
                  <td>{ORIGINS[each.target_by] ?? each.target_by}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
    </Card>
  );
}

/** Weights, half-life and window of the site, and how to change them. */
function Terms({ data, admin }: { data: SharesView; admin: boolean }): ReactNode {
  const [open, setOpen] = useState(false);
  return (
    <Card title="Fair share" aside={admin ? <Button small icon="edit" onClick={() => setOpen(true)}>Change fair share</Button> : null}>
      <p className="muted">{terms(data.fair_share, data.fair_share.project ?? "by shares")}</p>
      {data.queues.length === 0 ? (
        <Empty title="No queue goes by fair share" icon="limits"><p>To let those who used less than their share go first:</p><Command text="rota queue set default --order fairshare" /></Empty>
      ) : null}
      {open ? <FairShareDialog fair={data.fair_share} base={data.version} close={() => setOpen(false)} /> : null}
    </Card>
  );
}

export function Shares({ admin }: { admin: boolean }): ReactNode {
  const { data, error } = useQuery({ queryKey: ["shares"], queryFn: ({ signal }) => get<SharesView>("/shares", {}, signal) });
  if (error && !data) return <Trouble error={error} />;
  if (!data) return <Skeleton lines={5} />;
  return (
    <>
      <Terms data={data} admin={admin} />
      {data.queues.map((each) => <Standings key={each.queue} found={each} fair={data.fair_share} />)}
    </>
  );
}
