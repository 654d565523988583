/** One learning group: what it recommends, what its jobs asked for, were given and used, and how to forget it. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { get, remove } from "../../api/client";
import type { LearnedGroupView } from "../../api/types";
import { count, duration, moment, percent, plural, size } from "../../format";
import { useParam } from "../../router";
import { useAdmin } from "../../session";
import { Dialog } from "../../ui/dialog";
import { Segments } from "../../ui/form";
import { Button, Card, Skeleton, Trouble } from "../../ui/parts";
import { Figure } from "../../ui/sheet";
import { useSay } from "../../ui/toasts";
import { Histogram } from "./histogram";
import { AGAINST, isAgainst } from "./points";
import { Scatter } from "./scatter";


function Forget({ name, gone }: { name: string; gone: () => void }): ReactNode {
  const [asking, setAsking] = useState(false);
  const client = useQueryClient();
  const say = useSay();
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => remove<void>(`/learning/${encodeURIComponent(name)}`),
    onSuccess: () => {
      say(`${name}: forgotten`);
      client.removeQueries({ queryKey: ["learned", name] });
      void client.invalidateQueries({ queryKey: ["learning"] });
      gone();
    },
  });
  return (
    <>
      <Button small kind="danger" icon="trash" onClick={() => setAsking(true)}>Forget</Button>
      {asking ? (
        <Dialog title={`Forget ${name}?`} close={() => setAsking(false)}>
          <p className="muted">What its jobs used is dropped, and jobs get what they ask for, or the defaults, until enough of them have ended. It cannot be undone.</p>
          {error ? <Trouble error={error} /> : null}
          <div className="actions">
            <Button kind="ghost" onClick={() => setAsking(false)}>Cancel</Button>
            <Button kind="danger" disabled={isPending} onClick={() => mutate()}>Forget it</Button>
          </div>
        </Dialog>
      ) : null}
    </>
  );
}

export function Group({ name, gone }: { name: string; gone: () => void }): ReactNode {
  const admin = useAdmin();
  const [word, setAgainst] = useParam("against", "given");
  const against = isAgainst(word) ? word : "given";
  const { data, error } = useQuery({
    queryKey: ["learned", name],
    queryFn: ({ signal }) => get<LearnedGroupView>(`/learning/${encodeURIComponent(name)}`, {}, signal),
  });
  if (error && !data) return <Trouble error={error} />;
  if (!data) return <Skeleton lines={8} />;
  return (
    <div className="stack">
      <Card title={<span className="mono">{data.name}</span>} aside={admin ? <Forget name={data.name} gone={gone} /> : null}>
        <dl className="figures">
          <Figure name="Memory" value={size(data.mem_bytes)} more="recommended" />
          <Figure name="Time" value={duration(data.time_s)} more="recommended" />
          <Figure name="Disk" value={size(data.disk_bytes)} more="recommended" />
          <Figure name="Seen" value={count(data.observations)} more={`${percent(data.successes, data.observations)} succeeded`} />
          <Figure name="Lacked something" value={count(data.lacking)} more="failed for it" />
        </dl>
        <p className="muted learn-note">
          {data.oldest ? `From ${moment(data.oldest)} to ${moment(data.newest)}. ` : ""}
          {Object.keys(data.lines).length ? `Jobs that name their input get more exact figures for ${Object.keys(data.lines).join(", ")}.` : ""}
        </p>
      </Card>
      <div className="learn-against">
        <span className="muted">Used, beside what was</span>
        <Segments label="Compare with" value={against} change={setAgainst} options={AGAINST.map((each) => [each, each === "given" ? "given by Rota" : "asked for"])} />
      </div>
      <div className="pair"><Scatter what="mem" against={against} points={data.points} /><Scatter what="time" against={against} points={data.points} /></div>
      {data.points.length ? <p className="muted learn-note">The newest {plural(data.points.length, "attempt")}; those that {against === "asked" ? "asked for nothing, or " : ""}were not measured have no point. A point opens its job.</p> : null}
      <div className="pair"><Histogram what="mem" buckets={data.mem_histogram} /><Histogram what="time" buckets={data.time_histogram} /></div>
    </div>
  );
}
