/** What happened to the job, attempt by attempt. */

import type { ReactNode } from "react";
import type { JobView, StoryLine } from "../../api/types";
import { ago, moment } from "../../format";
import { tone } from "../../states";
import { Icon, type IconName, STATE_ICONS } from "../../ui/icons";
import { Card } from "../../ui/parts";
import { useNow } from "../../now";
import { WithLinks } from "../../ui/with_links";
import "./story.css";

const EVENTS: Record<string, { like: string; icon: IconName }> = {
  added: { like: "ready", icon: "plus" },
  started: { like: "running", icon: "running" },
  retried: { like: "ready", icon: "retry" },
  released: { like: "ready", icon: "running" },
  revived: { like: "running", icon: "retry" },
  modified: { like: "ready", icon: "edit" },
};

const sign = (event: string): { like: string; icon: IconName } =>
  EVENTS[event] ?? { like: event, icon: STATE_ICONS[event] ?? "more" };

/** Consecutive lines of one attempt (0: between attempts). */
export function chapters(story: StoryLine[]): { attempt: number; lines: StoryLine[] }[] {
  const found: { attempt: number; lines: StoryLine[] }[] = [];
  for (const line of story) {
    const last = found.at(-1);
    if (last && last.attempt === line.attempt) last.lines.push(line);
    else found.push({ attempt: line.attempt, lines: [line] });
  }
  return found;
}

function Event({ line, now }: { line: StoryLine; now: number }): ReactNode {
  const { like, icon } = sign(line.event);
  return (
    <li>
      <i className={`tone-${tone(like)}`}><Icon name={icon} size={11} /></i>
      <div>
        <strong>{line.event.replaceAll("_", " ")}</strong>
        {line.text ? <span className="muted"> <WithLinks text={line.text} /></span> : null}
      </div>
      <time dateTime={line.at} title={new Date(line.at).toLocaleString()} className="num">
        <span className="muted">{ago(line.at, now)}</span>
        <span className="faint">{moment(line.at)}</span>
      </time>
    </li>
  );
}

export function Story({ job }: { job: JobView }): ReactNode {
  const now = useNow();
  const story = job.story ?? [];
  if (story.length === 0) return null;
  return (
    <Card title="Story" className="story">
      {chapters(story).map((each, at) => (
        <section key={at}>
          {each.attempt > 0 ? <h3>Attempt {each.attempt}</h3> : null}
          <ol>{each.lines.map((line, place) => <Event key={place} line={line} now={now} />)}</ol>
        </section>
      ))}
    </Card>
  );
}
