/** One job: what it is, why it waits, what it prints, what happened to it. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect } from "react";
import { ApiError, get } from "../api/client";
import type { JobView } from "../api/types";
import { Link, go, usePlace } from "../router";
import { Empty, Skeleton, Trouble } from "../ui/parts";
import { Amounts } from "./job/amounts";
import { Attempts } from "./job/attempts";
import { Details, Siblings } from "./job/details";
import { Graph } from "./job/graph";
import { Head } from "./job/head";
import { Output } from "./job/output";
import { Result } from "./job/result";
import { Story } from "./job/story";
import { element as elementOf } from "./job/view";
import { Why } from "./job/why";
import "./job/job.css";

/** A job's id, or an element of an array: 12_3. */
const ID = /^[1-9]\d{0,14}(_\d{1,10})?$/;

function Nobody({ id }: { id: string }): ReactNode {
  return (
    <Empty title={`There is no job ${id.slice(0, 20)}`} icon="search">
      It may have been removed. <Link to="/jobs">See all jobs</Link>
    </Empty>
  );
}

export default function Page(): ReactNode {
  const { id = "" } = usePlace();
  const known = ID.test(id);
  const element = id.includes("_");
  // An element's address is replaced by that of its job, because events name jobs by id.
  const found = useQuery({
    queryKey: ["element", id],
    queryFn: ({ signal }) => get<JobView>(`/jobs/${id}`, {}, signal),
    enabled: known && element,
  });
  useEffect(() => {
    if (element && found.data) go(`/jobs/${found.data.id}${window.location.search}`, { replace: true });
  }, [element, found.data]);
  const asked = useQuery({
    queryKey: ["job", Number(id)],
    queryFn: ({ signal }) => get<JobView>(`/jobs/${id}`, {}, signal),
    enabled: known && !element,
  });
  const { data: job, error } = element ? found : asked;
  const title = job ? `${elementOf(job) ?? job.id} ${job.name || job.group} · ${job.state}` : `Job ${id}`;
  useEffect(() => {
    const before = document.title;
    document.title = title;
    return () => {
      document.title = before;
    };
  }, [title]);

  if (!known || (error instanceof ApiError && error.status === 404)) return <Nobody id={id} />;
  if (!job) return error ? <Trouble error={error} /> : <Skeleton lines={8} />;
  return (
    <div className="job" key={job.id}>
      <Head job={job} />
      {error ? <Trouble error={error} /> : null}
      <div className="job-columns">
        <div>
          <Why job={job} />
          <Result job={job} />
          <Output job={job} />
          <Attempts job={job} />
          <Graph id={job.id} />
        </div>
        <div>
          <Siblings job={job} />
          <Story job={job} />
          <Amounts job={job} />
          <Details job={job} />
        </div>
      </div>
    </div>
  );
}
