/** Groups that are not done: how far they are, and when they are expected to end. */

import { type ReactNode, useMemo } from "react";
import type { StatusView } from "../../api/types";
import { ago, count, moment, percent } from "../../format";
import { Link } from "../../router";
import { STUCK, WAITING, stuck, sum } from "../../states";
import { Card, Progress } from "../../ui/parts";
import { addressOf } from "../jobs/filter";
import { type GroupLine, inProgress, pace } from "./progress";

const SHOWN = 8;

function facts({ active, rate, counts }: GroupLine): string {
  const words = [active ? `${count(active)} running` : "", counts["failed"] ? `${count(counts["failed"])} failed` : "", rate ? pace(rate) : ""];
  const waiting = sum(counts, WAITING) - sum(counts, STUCK);
  const left = [waiting ? `${count(waiting)} waiting` : "", ...STUCK.map((state) => (counts[state] ? `${count(counts[state])} ${state}` : ""))];
  return words.filter(Boolean).join(", ") || left.filter(Boolean).join(", ");
}

function prospect({ end, endReason, counts }: GroupLine, now: number): string {
  if (stuck(counts)) return `what is left is ${STUCK.filter((state) => counts[state]).join(" or ")}`;
  if (!end) return endReason ? `its end is not known: ${endReason}` : "its end is not known";
  const ends = Date.parse(end) - now < 5000 ? "ends any moment" : `ends ${ago(end, now)}, about ${moment(end)}`;
  return endReason ? `${ends}; ${endReason}` : ends;
}

export function Groups({ status, now }: { status: StatusView; now: number }): ReactNode {
  const lines = useMemo(() => inProgress(status), [status]);
  return (
    <Card title="Groups in progress" aside={<Link to="/groups">All groups</Link>} className="ov-groups">
      {lines.length === 0 ? <p className="muted">Everything that was added is done.</p> : null}
      <ul>
        {lines.slice(0, SHOWN).map((line) => (
          <li key={line.name}>
            <div className="ov-line">
              <Link to={addressOf({ group: line.name })} className="clip">{line.name}</Link>
              <span className="faint clip">{facts(line)}</span>
              <span className="num">{count(line.ended)} of {count(line.total)} <b>{percent(line.ended, line.total)}</b></span>
            </div>
            <Progress counts={line.counts} label={`${line.name}: ${line.ended} of ${line.total} jobs done`} />
            <small className="faint">{prospect(line, now)}</small>
          </li>
        ))}
      </ul>
      {lines.length > SHOWN ? <p className="muted"><Link to="/groups">{count(lines.length - SHOWN)} more groups</Link></p> : null}
    </Card>
  );
}
