/** The actions on a session, and the question that it asks. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { ApiError, post } from "../../api/client";
import type { PipelineAction, PipelineActedView, PipelinePictureView } from "../../api/types";
import { Link } from "../../router";
import { useOnly } from "../../session";
import { Dialog } from "../../ui/dialog";
import { Icon } from "../../ui/icons";
import { Button } from "../../ui/parts";
import { useSay } from "../../ui/toasts";
import { type Deed, deeds, nameOf } from "./words";

const troubleOf = (error: Error): string =>
  error instanceof ApiError && error.hint ? `${error.message} (${error.hint})` : error.message;

/** Acts on a session, and says what came of it. */
export function useActing(picture: PipelinePictureView): { act: (body: PipelineAction, done: string) => void; busy: boolean; mine: boolean } {
  const say = useSay();
  const queries = useQueryClient();
  const only = useOnly();
  const { mutate, isPending } = useMutation({
    mutationFn: ({ body }: { body: PipelineAction; done: string }) => post<PipelineActedView>(`/pipelines/${picture.session}/actions`, body),
    onSuccess: (_acted, { done }) => say(done),
    onError: (error) => say(troubleOf(error), { bad: true }),
    onSettled: () => queries.invalidateQueries({ queryKey: ["pipelines"] }),
  });
  return { act: (body, done) => mutate({ body, done }), busy: isPending, mine: only === null || only === picture.user };
}

export function Doing({ picture }: { picture: PipelinePictureView }): ReactNode {
  const [asking, setAsking] = useState<Deed | null>(null);
  const { act, busy, mine } = useActing(picture);
  const name = nameOf(picture.file);
  if (!mine) return <p className="muted">{picture.user}’s pipeline: only they and administrators can act on it.</p>;
  const perform = (deed: Deed): void => {
    setAsking(null);
    act({ action: deed.action }, `${name} ${deed.done}`);
  };
  const found = deeds(picture.state, { failed: picture.outcomes["failed"] ?? 0, terminated: picture.outcomes["terminated"] ?? 0, ending: picture.ending });
  return (
    <>
      {found.map((deed) => (
        <Button key={deed.action} icon={deed.icon} disabled={busy} kind={deed.question ? "danger" : deed.action === "pause" ? "plain" : "primary"}
          onClick={() => (deed.question ? setAsking(deed) : perform(deed))}>
          {deed.question ? `${deed.name}…` : deed.name}
        </Button>
      ))}
      {asking ? (
        <Dialog title={`${asking.name} ${name}?`} close={() => setAsking(null)}>
          <p>{asking.question}</p>
          <div className="actions">
            <Button onClick={() => setAsking(null)}>Cancel</Button>
            <Button kind="danger" autoFocus onClick={() => perform(asking)}>{asking.name}</Button>
          </div>
        </Dialog>
      ) : null}
    </>
  );
}

/** An element has failed, and the session stands still until somebody answers. */
export function Asked({ picture }: { picture: PipelinePictureView }): ReactNode {
  const { question } = picture;
  if (!question) return null;
  return (
    <div className="strip warn pipeline-asks" role="status">
      <Icon name="help" />
      <span className="in-text">
        <strong>{question.element || "The session"} failed at {question.stage}.</strong> Everything stands still until you continue, retry, quit or terminate.{" "}
        {question.job === null ? null : <Link to={`/jobs/${question.job}`}>See what it printed</Link>}
      </span>
    </div>
  );
}
