/** The list of problems that need a person, each with a button that helps. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { post } from "../../api/client";
import type { ActedView } from "../../api/types";
import { plural } from "../../format";
import { Link } from "../../router";
import { useAdmin } from "../../session";
import { Dialog } from "../../ui/dialog";
import { Icon } from "../../ui/icons";
import { Button, Card } from "../../ui/parts";
import { useSay } from "../../ui/toasts";
import type { Deed, Need } from "./attention";

const DONE: Record<string, string> = { retry: "retried", release: "released", "confirm-dead": "declared dead" };

function useDeed(): { run: (deed: Deed) => void; busy: boolean } {
  const client = useQueryClient();
  const say = useSay();
  const { mutate, isPending } = useMutation({
    mutationFn: async ({ run }: Deed): Promise<string> => {
      if ("manager" in run) {
        await post("/manager/resume");
        return "The manager goes on";
      }
      const { changed } = await post<ActedView>("/jobs/actions", run);
      return `${plural(changed, "job")} ${DONE[run.action] ?? "changed"}`;
    },
    onSuccess: (text) => {
      say(text);
      void client.invalidateQueries({ queryKey: ["status"] });
      void client.invalidateQueries({ queryKey: ["manager"] });
    },
    onError: (error) => say(error.message, { bad: true }),
  });
  return { run: mutate, busy: isPending };
}

export function Needs({ needs }: { needs: readonly Need[] }): ReactNode {
  const { run, busy } = useDeed();
  const admin = useAdmin();
  const [asking, setAsking] = useState<Deed | null>(null);
  if (needs.length === 0)
    return (
      <Card className="ov-needs calm">
        <Icon name="complete" size={20} />
        <div>
          <h2>Nothing needs you</h2>
          <p className="muted">No failed, lost, blocked or held jobs and none that never fits; all runners are here.</p>
        </div>
      </Card>
    );
  return (
    <Card title="Needs a person" aside={<span className="ov-count num">{needs.length}</span>} className="ov-needs">
      <ul>
        {needs.map(({ key, tone, icon, title, text, to, deed }) => (
          <li key={key}>
            <span className={`ov-mark tone-${tone}`}><Icon name={icon} size={14} /></span>
            <div>
              {to ? <Link to={to} className="clip">{title}</Link> : <b className="clip">{title}</b>}
              <p className="muted">{text}</p>
            </div>
            {deed && (admin || !("manager" in deed.run)) ? (
              <Button small disabled={busy} aria-label={`${deed.label}: ${title}`} onClick={() => (deed.ask ? setAsking(deed) : run(deed))}>{deed.label}</Button>
            ) : null}
          </li>
        ))}
      </ul>
      {asking ? (
        <Dialog title={asking.label} close={() => setAsking(null)}>
          <p>{asking.ask}</p>
          <div className="actions">
            <Button onClick={() => setAsking(null)}>Cancel</Button>
            <Button kind="danger" onClick={() => { run(asking); setAsking(null); }}>{asking.label}</Button>
          </div>
        </Dialog>
      ) : null}
    </Card>
  );
}
