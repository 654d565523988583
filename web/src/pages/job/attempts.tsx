/** Each attempt: how and where it ended, and how much of its allocation it used. */

import type { ReactNode } from "react";
import type { AttemptView, JobView } from "../../api/types";
import { duration, moment, size } from "../../format";
import { ENDED } from "../../states";
import { Icon } from "../../ui/icons";
import { Card, StateBadge } from "../../ui/parts";
import { WithLinks } from "../../ui/with_links";
import { useNow } from "../../now";
import { cores } from "./amounts";
import { Hosts } from "./hosts";
import { type Four, type Usage, usage } from "./usage";
import { attemptsOf, endOf } from "./view";
import "./attempts.css";

const MUCH_MEMORY = 64 << 20;
const MUCH_TIME_S = 60;

function Bar({ name, of, say }: { name: string; of: Usage; say: (value: number) => string }): ReactNode {
  if (of.scale === 0 || (of.used === null && of.marks.length === 0)) return null;
  const share = (value: number): string => `${Math.min(100, (100 * value) / of.scale)}%`;
  const known = of.marks.map((each) => `${each.name} ${say(each.value)}`);
  const spoken = [of.used === null ? "" : `used ${say(of.used)}`, ...known, of.words].filter(Boolean).join(", ");
  return (
    <div className={`usage ${of.verdict}`}>
      <span className="usage-name">{name}</span>
      <div className="usage-track" role="img" aria-label={`${name}: ${spoken}`} title={spoken}>
        {of.used === null ? null : <i className="usage-used" style={{ width: share(of.used) }} />}
        {of.marks.filter((each) => each.value <= of.scale).map((each) => (
          <i key={each.name} className={`usage-mark ${each.name}`} style={{ left: share(each.value) }} />
        ))}
      </div>
      <span className="usage-words num">
        <strong>{of.used === null ? "–" : say(of.used)}</strong>
        {of.words ? <em>{of.words}</em> : null}
        <span className="faint">{known.join(" · ")}</span>
      </span>
    </div>
  );
}


function Fact({ name, children }: { name: string; children: ReactNode }): ReactNode {
  return children ? <div><dt>{name}</dt><dd className="num">{children}</dd></div> : null;
}

/** The four values of each amount. The learned one belongs to the job: it is the current value of its group. */
function Bars({ job, attempt, ended, wall }: { job: JobView; attempt: AttemptView; ended: boolean; wall: number | null }): ReactNode {
  const its = attempt.amounts;
  if (!its) return null;
  const now = job.amounts;
  const four = (of: Four, learned: number | null | undefined): Four => ({ ...of, learned: learned ?? null });
  const limited = its.walltime_s.given !== null;
  const time = { ...its.time_s, asked: its.time_s.asked ?? its.walltime_s.asked, used: wall };
  const disk = four(its.disk_bytes, now?.disk_bytes.learned);
  const held = its.cores.given ?? 0;
  return (
    <div className="usages">
      <Bar name="memory" say={size} of={usage(four(its.mem_bytes, now?.mem_bytes.learned), { ended, much: MUCH_MEMORY })} />
      <Bar name="time" say={duration} of={usage(four(time, now?.time_s.learned), { ended, much: MUCH_TIME_S, by: limited ? "walltime" : "expected" })} />
      {disk.asked || disk.given || disk.used ? <Bar name="disk" say={size} of={usage(disk, { ended, much: MUCH_MEMORY })} /> : null}
      {its.cores.used !== null && wall !== null && wall >= 1 ? <Bar name="cores" say={cores} of={usage(its.cores, { ended, much: held > 1 ? 0.5 : Infinity })} /> : null}
    </div>
  );
}

function Attempt({ job, attempt }: { job: JobView; attempt: AttemptView }): ReactNode {
  const now = useNow();
  const ended = attempt.ended_at !== null || ENDED.includes(attempt.state);
  const wall = attempt.wall_s ?? (attempt.started_at && !ended ? Math.max(0, (now - Date.parse(attempt.started_at)) / 1000) : null);
  const { cause, how } = endOf(attempt);
  return (
    <li className="attempt">
      <header>
        <strong>Attempt {attempt.attempt}</strong>
        <StateBadge state={attempt.state} />
        {cause ? <span className="attempt-cause"><WithLinks text={cause} /></span> : null}
        {how ? <code className={cause ? "muted" : "attempt-bad"}>{how}</code> : null}
        {attempt.exit_code === 0 ? <code className="muted">exit 0</code> : null}
      </header>
      {attempt.output_missing ? (
        <p className="attempt-bad attempt-missing">
          <Icon name="failed" size={13} /> Output is missing: {attempt.output_missing.message}
        </p>
      ) : null}
      <dl className="facts">
        <Fact name={attempt.hosts.length > 1 ? "hosts" : "host"}>{attempt.hosts.length ? <Hosts hosts={attempt.hosts} /> : null}</Fact>
        <Fact name={attempt.resources && /^\d+$/.test(attempt.resources) ? "core" : "cores"}>{attempt.resources ? <span title="The numbers of the cores that it had">no. {attempt.resources}</span> : null}</Fact>
        <Fact name="started">{attempt.started_at ? <time dateTime={attempt.started_at}>{moment(attempt.started_at)}</time> : null}</Fact>
        <Fact name="ended">{attempt.ended_at ? <time dateTime={attempt.ended_at}>{moment(attempt.ended_at)}</time> : null}</Fact>
        <Fact name="wall">{wall === null ? null : duration(wall)}</Fact>
        <Fact name="cpu">{attempt.cpu_s === null ? null : duration(attempt.cpu_s)}</Fact>
        <Fact name="runner">{attempt.runner}</Fact>
        <Fact name="printed">{(attempt.out_bytes ?? 0) + (attempt.err_bytes ?? 0) ? size((attempt.out_bytes ?? 0) + (attempt.err_bytes ?? 0)) : null}</Fact>
      </dl>
      <Bars job={job} attempt={attempt} ended={ended} wall={wall} />
      {attempt.behaviours.length ? (
        <ul className="behaved">
          {attempt.behaviours.map((each, at) => (
            <li key={at} className={each.ok ? "ok" : "bad"}>
              <Icon name={each.ok ? "complete" : "failed"} size={13} />
              <code>{each.behaviour}</code>
              <span className="muted">{each.ok ? "done" : `failed${each.message ? `: ${each.message}` : ""}`}</span>
            </li>
          ))}
        </ul>
      ) : null}
    </li>
  );
}

export function Attempts({ job }: { job: JobView }): ReactNode {
  const attempts = attemptsOf(job).toReversed();
  if (attempts.length === 0) return null;
  const key = (
    <span className="usage-key faint" aria-hidden="true">
      <span><i className="usage-mark asked" /> asked</span>
      <span><i className="usage-mark learned" /> learned</span>
      <span><i className="usage-mark given" /> given</span>
      <span><i className="usage-used" /> used</span>
    </span>
  );
  return (
    <Card title="Attempts" aside={key}>
      <ol className="attempts">{attempts.map((each) => <Attempt key={each.attempt} job={job} attempt={each} />)}</ol>
    </Card>
  );
}
