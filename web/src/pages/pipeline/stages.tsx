/** The stages as columns: their counts and, below, the elements in their order. Few elements have a row each; many
 * become a strip, in which the front of what is done moves down and from column to column. */

import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { get } from "../../api/client";
import type { ElementPage, ElementView, PipelinePictureView, RunningElementView, StagePictureView } from "../../api/types";
import { count, duration, plural } from "../../format";
import { Link } from "../../router";
import { Icon, STATE_ICONS } from "../../ui/icons";
import { Card, StateBadge } from "../../ui/parts";
import { Strip } from "./strip";
import { SumsBar } from "./sums";
import { bySums, ELEMENT_STATES, meaningOf, settled, wordOf } from "./words";

/** With at most so many elements each has a row. */
export const FEW = 40;
const SHOWN = 4;

/** `since`: how old the picture is, in seconds. */
const runs = ({ run_s, state }: RunningElementView, since: number): string => duration(run_s + (state === "running" ? since : 0));

function Head({ stage, picture }: { stage: StagePictureView; picture: PipelinePictureView }): ReactNode {
  const counts = bySums(stage.sums);
  return (
    <th scope="col">
      <span className="stage-name">
        <span className="clip" title={stage.name}>{stage.name}</span>
        {stage.imperative ? <span className="tag" title="Other stages are there for this one; quit stops what comes before its end">imperative</span> : null}
      </span>
      <SumsBar counts={counts} label={`Progress of ${stage.name}`} />
      <span className="stage-done num">{count(settled(stage.sums))} <span className="muted">/ {count(picture.total)}</span></span>
      <span className="stage-counts">
        {ELEMENT_STATES.filter((state) => counts[state] > 0 && state !== "ok").map((state) => (
          <Link key={state} to={`/pipelines/${picture.session}?stage=${encodeURIComponent(stage.name)}&state=${state}#elements`} className={`num word-${state}`}>
            {count(counts[state])} {state}
          </Link>
        ))}
        {stage.ready ? <span className="num muted">of these {count(stage.ready)} ready</span> : null}
      </span>
      <span className="stage-about muted">
        {stage.needs_dependencies ? <span title="An element waits here until what it depends on has passed">waits for dependencies</span> : null}
        {stage.takes.map((each) => <span key={each} className="mono">{each}</span>)}
      </span>
    </th>
  );
}

function Cell({ element, at, since, running }: { element: ElementView; at: number; since: number; running: RunningElementView | undefined }): ReactNode {
  const letter = element.statuses.charAt(at);
  const word = wordOf(letter);
  const job = element.jobs[at] ?? null;
  if (word === "ahead") return <td><span className="hidden">{meaningOf(letter)}</span></td>;
  const text = word === "running" && running ? runs(running, since) : word === "pending" ? `waits for ${element.waits_for.join(", ")}` : word === "checking" ? "looks" : word;
  const inside = <><Icon name={word === "pending" ? "dependent" : word === "checking" ? "search" : (STATE_ICONS[word] ?? "ready")} size={12} /><span className="clip">{text}</span></>;
  const title = `${element.name}: ${meaningOf(letter)}${word === "blocked" && element.blocked_by ? ` by ${element.blocked_by}` : ""}`;
  return (
    <td>
      {job === null ? <span className={`flow-cell on-${word}`} title={title}>{inside}</span>
        : <Link to={`/jobs/${job}`} className={`flow-cell on-${word}`} title={`${title}, job ${job}`}>{inside}</Link>}
    </td>
  );
}

function Rows({ picture, since }: { picture: PipelinePictureView; since: number }): ReactNode {
  const { data } = useQuery({
    queryKey: ["pipelines", picture.session, "few"],
    queryFn: ({ signal }) => get<ElementPage>(`/pipelines/${picture.session}/elements`, { limit: FEW }, signal),
  });
  const running = new Map(picture.running.map((each) => [each.job, each]));
  return (
    <tbody>
      {data?.elements.map((element) => (
        <tr key={element.name}>
          <th scope="row" className="clip" title={element.name}>{element.name}</th>
          {picture.stages.map((stage, at) => <Cell key={stage.name} element={element} at={at} since={since} running={running.get(element.jobs[at] ?? 0)} />)}
        </tr>
      ))}
    </tbody>
  );
}

function Many({ picture, since }: { picture: PipelinePictureView; since: number }): ReactNode {
  return (
    <tbody>
      <tr className="flow-strips">
        <th scope="row"><span className="flow-axis"><span>first</span><span className="muted">{plural(picture.total, "element")}, dependencies first</span><span>last</span></span></th>
        {picture.stages.map((stage) => <td key={stage.name}><Strip stage={stage} picture={picture} /></td>)}
      </tr>
      {picture.running_total ? <tr className="flow-running">
        <th scope="row">Running</th>
        {picture.stages.map((stage) => {
          const here = picture.running.filter((each) => each.stage === stage.name);
          return (
            <td key={stage.name}>
              <ul>
                {here.slice(0, SHOWN).map((each) => (
                  <li key={each.job}><Link to={`/jobs/${each.job}`} className="clip" title={each.element}>{each.element}</Link><span className="num muted nowrap">{runs(each, since)}</span></li>
                ))}
                {stage.sums.running > Math.min(SHOWN, here.length) ? <li className="muted num">{count(stage.sums.running - Math.min(SHOWN, here.length))} more</li> : null}
              </ul>
            </td>
          );
        })}
      </tr> : null}
    </tbody>
  );
}

export function Stages({ picture, since }: { picture: PipelinePictureView; since: number }): ReactNode {
  const few = picture.total <= FEW;
  return (
    <Card title="Stages" className="flow-card">
      <div className="sheet-scroll" tabIndex={0} role="region" aria-label="Stages">
        <table className="flow" style={{ minWidth: 100 + 142 * picture.stages.length }}>
          <thead>
            <tr>
              <th scope="col"><span className="hidden">Element</span></th>
              {picture.stages.map((stage) => <Head key={stage.name} stage={stage} picture={picture} />)}
            </tr>
          </thead>
          {few ? <Rows picture={picture} since={since} /> : <Many picture={picture} since={since} />}
        </table>
      </div>
      <ul className="legend" aria-label="Colours">
        {ELEMENT_STATES.filter((state) => (picture.outcomes[state] ?? 0) > 0 || ["ok", "running", "waiting"].includes(state)).map((state) => <li key={state}><i className={`ink-${state}`} />{state}</li>)}
      </ul>
      {picture.session_stages.length ? (
        <ul className="whole-stages">
          {picture.session_stages.map((each) => (
            <li key={each.name}>
              <b>{each.name}</b> <span className="muted">for the session as a whole</span> <StateBadge state={each.state} />
              {each.ran > 1 ? <span className="muted num">ran {each.ran} times</span> : null}
              {each.takes.map((word) => <span key={word} className="mono muted">{word}</span>)}
              {each.job === null ? null : <Link to={`/jobs/${each.job}`}>job {each.job}</Link>}
            </li>
          ))}
        </ul>
      ) : null}
    </Card>
  );
}
