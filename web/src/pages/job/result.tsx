/** What the call of a function returned, or the exception that ended it. */

import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { get } from "../../api/client";
import type { CallResult, JobView } from "../../api/types";
import { Card } from "../../ui/parts";
import { hasEnded } from "./view";
import "./result.css";

/** Characters of a result that are shown. */
const SHOWN = 20_000;

export function Result({ job }: { job: JobView }): ReactNode {
  const calls = typeof job.cmd === "object" && !Array.isArray(job.cmd);
  const { data } = useQuery({
    queryKey: ["job", job.id, "result", job.state, job.attempt],
    queryFn: ({ signal }) => get<CallResult>(`/jobs/${job.id}/result`, {}, signal),
    enabled: calls && hasEnded(job),
  });
  if (!calls || !data) return null;
  const { error } = data;
  const text = error ? error.traceback || error.message : JSON.stringify(data.result, null, 2);
  return (
    <Card title={error ? error.type : "Result"} className="result">
      <pre>{text.length > SHOWN ? `${text.slice(0, SHOWN)} …` : text}</pre>
    </Card>
  );
}
