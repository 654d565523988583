/** The buttons that act on the job. Actions that cannot be undone ask first. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { ApiError, post } from "../../api/client";
import type { ActedView, Action, JobView } from "../../api/types";
import { go } from "../../router";
import { useOnly } from "../../session";
import { Dialog } from "../../ui/dialog";
import { Button } from "../../ui/parts";
import { useSay } from "../../ui/toasts";
import { type Deed, changeable, deeds } from "./actions";
import { Change } from "./change";

const troubleOf = (error: Error): string =>
  error instanceof ApiError && error.hint ? `${error.message} (${error.hint})` : error.message;

export function Doing({ job }: { job: JobView }): ReactNode {
  const [asking, setAsking] = useState<Deed | null>(null);
  const [changing, setChanging] = useState(false);
  const [cascade, setCascade] = useState(false);
  const only = useOnly();
  const say = useSay();
  const queries = useQueryClient();

  const act = useMutation({
    mutationFn: (body: Action) => post<ActedView>("/jobs/actions", body),
    onError: (error) => say(troubleOf(error), { bad: true }),
    onSettled: () => queries.invalidateQueries({ queryKey: ["job", job.id] }),
  });
  const perform = async (deed: Deed): Promise<void> => {
    setAsking(null);
    const { action, undo } = deed;
    const select = [String(job.id)];
    try {
      // Awaited here instead of in the hook: when a job is removed, this component is gone before the answer comes.
      const { changed } = await act.mutateAsync({ action, select, ...(action === "remove" && cascade ? { cascade } : {}) });
      if (!changed) say(`job ${job.id} has changed meanwhile: nothing was done`, { bad: true });
      else say(`job ${job.id} ${deed.done}`, undo ? { undo: () => act.mutate({ action: undo, select }) } : {});
      if (changed && action === "remove") go("/jobs");
    } catch {
      // The error is shown already.
    }
  };

  if (only !== null && only !== job.user)
    return <p className="job-actions job-others muted">{job.user}’s job: only they and administrators can act on it.</p>;
  return (
    <div className="job-actions">
      {deeds(job.state, job.replaced_by !== null, only === null).map((deed) => (
        <Button
          key={deed.action} icon={deed.icon} disabled={act.isPending}
          kind={deed.action === "retry" || deed.action === "release" ? "primary" : deed.question ? "danger" : "plain"}
          onClick={() => (deed.question ? setAsking(deed) : void perform(deed))}
        >
          {deed.name}
        </Button>
      ))}
      {changeable(job.state) ? <Button icon="edit" onClick={() => setChanging(true)}>Change</Button> : null}
      {asking ? (
        <Dialog title={`${asking.name} job ${job.id}?`} close={() => setAsking(null)}>
          <p>{asking.question}</p>
          {asking.action === "remove" ? (
            <label className="job-cascade">
              <input type="checkbox" checked={cascade} onChange={(event) => setCascade(event.target.checked)} /> with everything that depends on it
            </label>
          ) : null}
          <div className="actions">
            <Button onClick={() => setAsking(null)}>Leave it</Button>
            <Button kind="danger" icon={asking.icon} onClick={() => void perform(asking)}>{asking.name}</Button>
          </div>
        </Dialog>
      ) : null}
      {changing ? <Change job={job} close={() => setChanging(false)} /> : null}
    </div>
  );
}
