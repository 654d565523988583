/** One session of a pipeline: its stages as columns, its elements flowing through them, failures, dependencies and time left. */

import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ApiError, get } from "../api/client";
import type { PipelinePictureView } from "../api/types";
import { useTitle } from "../frame";
import { count, duration, moment, percent } from "../format";
import { useNow } from "../now";
import { Link, usePlace } from "../router";
import { Icon } from "../ui/icons";
import { Card, Empty, Skeleton, StateBadge, Trouble } from "../ui/parts";
import { Figure, PageHead } from "../ui/sheet";
import { GraphCard } from "./graph/card";
import { Asked, Doing } from "./pipeline/doing";
import { Elements } from "./pipeline/elements";
import { Failures } from "./pipeline/failures";
import { Stages } from "./pipeline/stages";
import { SumsBar } from "./pipeline/sums";
import { nameOf } from "./pipeline/words";
import "./pipeline/pipeline.css";

const ID = /^[1-9]\d{0,14}$/;

function Figures({ picture, elapsed, since }: { picture: PipelinePictureView; elapsed: number; since: number }): ReactNode {
  const { outcomes, total } = picture;
  const done = total - (outcomes["waiting"] ?? 0) - (outcomes["running"] ?? 0);
  const left = picture.left_s === null ? null : Math.max(0, picture.left_s - since);
  return (
    <Card className="pipeline-figures">
      <SumsBar counts={outcomes} label="Elements" />
      <dl className="figures">
        <Figure name="Elements done" value={`${count(done)} / ${count(total)}`} more={percent(done, total)} />
        <Figure name="Running" value={count(picture.running_total)} />
        <Figure name="Failed" value={<span className={outcomes["failed"] ? "tone-of-failed" : ""}>{count(outcomes["failed"] ?? 0)}</span>}
          more={outcomes["blocked"] ? `${count(outcomes["blocked"])} blocked` : undefined} />
        <Figure name="Elapsed" value={duration(elapsed)} more={`since ${moment(picture.started_at)}`} />
        {picture.state === "ended"
          ? <Figure name="Ended" value={moment(picture.ended_at)} />
          : <Figure name="Time left" value={left === null ? "not known" : `≈ ${duration(left)}`}
              more={picture.path_s ? `at least ${duration(picture.path_s)} one after the other` : left === null ? "until something is measured" : undefined} />}
      </dl>
    </Card>
  );
}

export default function Page(): ReactNode {
  const { session = "" } = usePlace();
  const now = useNow();
  const known = ID.test(session);
  const { data: picture, error, dataUpdatedAt } = useQuery({
    queryKey: ["pipelines", Number(session)],
    queryFn: ({ signal }) => get<PipelinePictureView>(`/pipelines/${session}`, {}, signal),
    enabled: known,
  });
  const name = picture ? nameOf(picture.file) : `Session ${session}`;
  useTitle(picture && picture.state !== "running" ? `${name} · ${picture.state}` : name);
  const back = <Link to="/pipelines" className="machine-back pipeline-back"><Icon name="left" size={14} />Pipelines</Link>;
  if (!known || (error instanceof ApiError && error.status === 404))
    return (
      <>
        {back}
        <h1 className="hidden">No such session</h1>
        <Empty title={`There is no session ${session.slice(0, 20)}`} icon="pipelines">Its file may have been run again since. <Link to="/pipelines">See all pipelines</Link></Empty>
      </>
    );
  if (!picture) return error ? <>{back}<Trouble error={error} /></> : <Skeleton lines={8} />;
  const since = picture.state === "running" ? Math.max(0, now - dataUpdatedAt) / 1000 : 0;
  return (
    <div className="pipeline">
      <div>
        {back}
        <PageHead title={<span className="machine-title pipeline-title">{name}<StateBadge state={picture.state} />{picture.ending ? <span className="tag">{picture.ending === "quit" ? "quitting" : "terminating"}</span> : null}</span>}
          about={`${picture.file} · session ${picture.session} · ${picture.user}`}>
          <Doing picture={picture} />
        </PageHead>
      </div>
      {error ? <Trouble error={error} /> : null}
      <Asked picture={picture} />
      <Figures picture={picture} elapsed={picture.elapsed_s + since} since={since} />
      <Stages picture={picture} since={since} />
      <Failures picture={picture} />
      <GraphCard title="Dependencies" path={`/pipelines/${session}/graph`} name={["element", session]} what="element" find={(element) => `/pipelines/${session}?q=${encodeURIComponent(element)}#elements`} />
      <Elements picture={picture} />
    </div>
  );
}
