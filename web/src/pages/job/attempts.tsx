/** Each attempt: how it ended, where, and what it took of what it had. */

import type { ReactNode } from "react";
import type { AttemptView, JobView } from "../../api/types";
import { duration, moment, size } from "../../format";
import { ENDED } from "../../states";
import { Icon } from "../../ui/icons";
import { Card, StateBadge } from "../../ui/parts";
import { WithLinks } from "../../ui/with_links";
import { useNow } from "../../now";
import { Hosts } from "./hosts";
import { type Usage, usage } from "./usage";
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

const cores = (value: number): string => (value > 0 && value < 0.01 ? "under 0.01" : `${value < 10 ? value.toFixed(2).replace(/\.?0+$/, "") || "0" : Math.round(value)}`);

function Fact({ name, children }: { name: string; children: ReactNode }): ReactNode {
  return children ? <div><dt>{name}</dt><dd className="num">{children}</dd></div> : null;
}

function Attempt({ job, attempt }: { job: JobView; attempt: AttemptView }): ReactNode {
  const now = useNow();
  const ended = attempt.ended_at !== null || ENDED.includes(attempt.state);
  const wall = attempt.wall_s ?? (attempt.started_at && !ended ? Math.max(0, (now - Date.parse(attempt.started_at)) / 1000) : null);
  const { asked, learned } = job;
  const given = attempt.size;
  const busy = attempt.cpu_s !== null && wall ? attempt.cpu_s / wall : null;
  const cpus = given?.cpus ?? asked?.cpus ?? 0;
  const about = { ended };
  const { cause, how } = endOf(attempt);
  const chose = (name: string): boolean => job.given.includes(name);
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
          <Icon name="failed" size={13} /> Output is missing: {attempt.output_missing.message} (<code>{attempt.output_missing.code}</code>)
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
      <div className="usages">
        <Bar name="memory" say={size} of={usage(attempt.peak_mem_bytes, { asked: asked?.mem_bytes ?? null, learned: learned?.mem_bytes ?? null, given: given?.mem_bytes ?? null }, { ...about, much: MUCH_MEMORY, chose: chose("mem") })} />
        <Bar name="time" say={duration} of={usage(wall, { asked: asked?.time_s ?? null, learned: learned?.time_s ?? null, given: given?.time_s ?? null, walltime: job.walltime_s }, { ...about, much: MUCH_TIME_S, chose: chose("time") })} />
        {given?.disk_bytes || asked?.disk_bytes || attempt.peak_disk_bytes ? (
          <Bar name="disk" say={size} of={usage(attempt.peak_disk_bytes, { asked: asked?.disk_bytes ?? null, learned: learned?.disk_bytes ?? null, given: given?.disk_bytes ?? null }, { ...about, much: MUCH_MEMORY, chose: chose("disk") })} />
        ) : null}
        {busy !== null && wall !== null && wall >= 1 ? <Bar name="cores" say={cores} of={usage(busy, { asked: cpus }, { ...about, much: cpus > 1 ? 0.5 : Infinity, chose: true })} /> : null}
      </div>
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
      <span><i className="usage-used" /> used</span>
    </span>
  );
  return (
    <Card title="Attempts" aside={key}>
      <ol className="attempts">{attempts.map((each) => <Attempt key={each.attempt} job={job} attempt={each} />)}</ol>
    </Card>
  );
}
