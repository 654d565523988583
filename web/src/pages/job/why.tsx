/** Why a job is not running: each reason, the jobs in the way, what would help, and the expected start. */

import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { get } from "../../api/client";
import type { JobView, WhyReason, WhyView } from "../../api/types";
import { duration, moment } from "../../format";
import { Link } from "../../router";
import { WAITING } from "../../states";
import { Icon } from "../../ui/icons";
import { Card, Command } from "../../ui/parts";
import { WithLinks } from "../../ui/with_links";
import { useNow } from "../../now";
import "./why.css";

const SHOWN = 12;

function Countdown({ to }: { to: string }): ReactNode {
  const now = useNow();
  const left = (Date.parse(to) - now) / 1000;
  return (
    <div className="why-start">
      <Icon name="ready" />
      <span className="muted">Expected to start</span>
      <strong className="num">{left > 0 ? `in ${duration(left)}` : "any moment"}</strong>
      <time className="faint num" dateTime={to}>{moment(to)}</time>
    </div>
  );
}

function Reason({ reason }: { reason: WhyReason }): ReactNode {
  const said = new Set([...reason.message.matchAll(/\bjob (\d+)/g)].map((each) => Number(each[1])));
  const others = reason.blockers.filter((id) => !said.has(id));
  const blockers = others.slice(0, SHOWN);
  return (
    <li>
      <p className="why-message"><WithLinks text={reason.message} /></p>
      {blockers.length ? (
        <p className="why-blockers">
          <span className="muted">{said.size ? "Also in the way:" : "In the way:"}</span>
          {blockers.map((id) => <Link key={id} to={`/jobs/${id}`} className="num">{id}</Link>)}
          {others.length > SHOWN ? <span className="faint">and {others.length - SHOWN} more</span> : null}
        </p>
      ) : null}
      {reason.hint ? <p className="why-hint"><span className="muted">Try</span><Command text={reason.hint} /></p> : null}
    </li>
  );
}

export function Why({ job }: { job: JobView }): ReactNode {
  const waits = WAITING.includes(job.state) || job.state === "lost";
  const { data } = useQuery({
    queryKey: ["around", job.id, "why"],
    queryFn: ({ signal }) => get<WhyView>(`/jobs/${job.id}/why`, {}, signal),
    enabled: waits,
    refetchInterval: 15_000, // sentences say how long something will take
  });
  if (!waits || !data) return null;
  const start = data.expected_start;
  const never = data.reasons.some((each) => each.code === "unsatisfiable" || each.code === "dependency_never");
  return (
    <Card title={job.state === "lost" ? "Why it is lost" : "Why it is not running"} className={`why ${never ? "never" : ""}`}>
      {data.reasons.length ? (
        <ul>{data.reasons.map((each, at) => <Reason key={at} reason={each} />)}</ul>
      ) : (
        <p className="muted">Nothing is in its way: it starts in a moment.</p>
      )}
      {start ? <Countdown to={start} /> : null}
      {!start && data.expected_reason ? <p className="muted">Its start is not known: {data.expected_reason.message}</p> : null}
      {start && data.expected_end ? <p className="muted">Expected to end about {moment(data.expected_end)}</p> : null}
    </Card>
  );
}
