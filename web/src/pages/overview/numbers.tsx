/** Counts of running, waiting, failed and complete jobs, each a link to them. */

import type { ReactNode } from "react";
import type { StatusView } from "../../api/types";
import { gathered } from "../../charts/gathered";
import { type Minute, total, waits } from "../../charts/minutes";
import { Spark } from "../../charts/spark";
import { count, percent } from "../../format";
import { Link } from "../../router";
import { ACTIVE, WAITING, sum } from "../../states";
import { Icon, type IconName } from "../../ui/icons";
import { addressOf } from "../jobs/filter";

const WORDS = 3;

/** "12 ready, 3 held": the most frequent first. */
export function parts(counts: Record<string, number>, states: readonly string[]): string {
  return states.map((state): [string, number] => [state, counts[state] ?? 0]).filter(([, n]) => n > 0)
    .sort((a, b) => b[1] - a[1]).slice(0, WORDS).map(([state, n]) => `${count(n)} ${state}`).join(", ");
}

function Tile({ name, icon, kind, n, text, to, line }: {
  name: string; icon: IconName; kind: string; n: number; text: string; to: string; line: readonly number[];
}): ReactNode {
  return (
    <Link to={to} className={`ov-tile ${kind} ${n ? "" : "none"}`}>
      <span className="ov-name"><Icon name={icon} size={15} />{name}</span>
      <b className="num">{count(n)}</b>
      <small className="clip">{text || "\u00a0"}</small>
      <Spark values={gathered(line, 3)} />
    </Link>
  );
}

export function Numbers({ status, minutes }: { status: StatusView; minutes: readonly Minute[] }): ReactNode {
  const { counts, cores, cores_in_use: used } = status;
  const active = sum(counts, ACTIVE);
  const failed = counts["failed"] ?? 0;
  const groups = Object.values(status.groups).filter((each) => each["failed"]).length;
  const hour = total(minutes, "complete");
  return (
    <div className="ov-tiles">
      <Tile
        name="Running" icon="running" kind="run" n={active} to={addressOf({ state: ACTIVE.join(",") })} line={minutes.map((each) => each.started)}
        text={cores > 0 ? `${percent(used, cores)} of ${count(cores)} cores in use` : "no core can be used now"}
      />
      <Tile
        name="Waiting" icon="ready" kind="idle" n={sum(counts, WAITING)} to={addressOf({ state: WAITING.join(",") })} line={waits(minutes).map((each) => each ?? 0)}
        text={parts(counts, WAITING)}
      />
      <Tile
        name="Failed" icon="failed" kind="bad" n={failed} to={addressOf({ state: "failed" })} line={minutes.map((each) => each.failed)}
        text={failed ? `in ${groups === 1 ? "one group" : `${count(groups)} groups`}` : "nothing failed"}
      />
      <Tile
        name="Complete" icon="complete" kind="good" n={counts["complete"] ?? 0} to={addressOf({ state: "complete", sort: "-ended" })}
        line={minutes.map((each) => each.complete)} text={hour ? `${count(hour)} in the last hour` : ""}
      />
    </div>
  );
}
