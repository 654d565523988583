/** What if: when and where a job would run if it were submitted, and which jobs it would delay. */

import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useId, useState } from "react";
import { ApiError, post } from "../../api/client";
import type { PlanView } from "../../api/types";
import { ago, duration, moment, plural } from "../../format";
import { Link } from "../../router";
import { Button, Card } from "../../ui/parts";
import { WithLinks } from "../../ui/with_links";
import { useAgain } from "./again";
import { type Fault, NOTHING, type Wish, faultOf, jobOf } from "./asking";

/** How many ids of delayed jobs are listed. */
const SHOWN = 8;

function Field({ name, label, wish, set, fault, placeholder, mono = false, list }: {
  name: keyof Wish; label: string; wish: Wish; set: (wish: Wish) => void; fault: Fault | null; placeholder: string;
  mono?: boolean; list?: readonly string[];
}): ReactNode {
  const id = useId();
  const wrong = fault?.field === name ? fault : null;
  return (
    <div className={`field ${name}`}>
      <label htmlFor={id}>{label}</label>
      <input
        id={id} className={mono ? "mono" : ""} value={wish[name]} placeholder={placeholder} spellCheck={false} autoComplete="off"
        aria-invalid={wrong !== null} aria-describedby={wrong ? `${id}-wrong` : undefined} list={list ? `${id}-list` : undefined}
        onChange={(event) => set({ ...wish, [name]: event.target.value })}
      />
      {list ? <datalist id={`${id}-list`}>{list.map((each) => <option key={each} value={each} />)}</datalist> : null}
      {wrong ? (
        <div className="wrong" id={`${id}-wrong`} role="alert">
          {wrong.column === null ? null : (
            <pre aria-hidden="true">{`${wish[name].trim()}\n${" ".repeat(wrong.column - 1)}^`}</pre>
          )}
          {wrong.text}
          {wrong.hint ? <p className="muted">{wrong.hint}</p> : null}
        </div>
      ) : null}
    </div>
  );
}

function Jobs({ ids }: { ids: readonly number[] }): ReactNode {
  return (
    <>
      {ids.slice(0, SHOWN).map((id) => <Link key={id} to={`/jobs/${id}`}>#{id} </Link>)}
      {ids.length > SHOWN ? "…" : ""}
    </>
  );
}

function Found({ plan, ends, now, show }: { plan: PlanView; ends: readonly number[]; now: number; show: () => void }): ReactNode {
  if (!plan.start)
    return (
      <div className="found never" role="status">
        <b>It would not start.</b>
        <p><WithLinks text={plan.reason?.message ?? "Nothing is known about why."} /></p>
        {plan.reason?.hint ? <p className="muted">Try <code>{plan.reason.hint}</code></p> : null}
      </div>
    );
  const soon = Date.parse(plan.start) - now < 2000;
  return (
    <div className="found" role="status">
      <b>{soon ? "It would start now" : `It would start ${ago(plan.start, now)}`}</b>
      <dl>
        <div><dt>Start</dt><dd className="num">{moment(plan.start)}</dd></div>
        {plan.end ? <div><dt>End by</dt><dd className="num">{moment(plan.end)} ({duration((Date.parse(plan.end) - Date.parse(plan.start)) / 1000)})</dd></div> : null}
        <div><dt>Where</dt><dd className="clip" title={plan.hosts.join(", ")}>{plan.hosts.join(", ") || "–"}{plan.resources ? ` (${plan.resources})` : ""}</dd></div>
        {plan.behind ? <div><dt>Behind</dt><dd>{plural(plan.behind, "job")}</dd></div> : null}
      </dl>
      {plan.reason && !soon ? <p className="muted"><WithLinks text={plan.reason.message} /></p> : null}
      {plan.reason?.hint && !soon ? <p className="muted">Try <code>{plan.reason.hint}</code></p> : null}
      {plan.moves.length ? <p>{plural(plan.moves.length, "job")} would move: <Jobs ids={plan.moves} /></p> : null}
      {ends.length ? <p>{plural(ends.length, "besteffort job")} would be ended for it: <Jobs ids={ends} /></p> : null}
      {plan.moves.length + ends.length === 0 ? <p className="muted">Nobody else would move.</p> : null}
      {plan.notices.map((each) => <p key={each} className="muted">{each}</p>)}
      <Button small onClick={show}>Show it in the plan</Button>
    </div>
  );
}

export function WhatIf({ plan, ends, onPlan, onShow, now, queues }: {
  plan: PlanView | null; ends: readonly number[]; onPlan: (plan: PlanView | null) => void; onShow: (plan: PlanView) => void; now: number; queues: readonly string[];
}): ReactNode {
  const [wish, setWish] = useState<Wish>(NOTHING);
  const [sent, setSent] = useState<Wish>(NOTHING);
  const ask = useMutation({
    mutationFn: (asked: Wish) => post<PlanView>("/plan", { job: jobOf(asked) }),
    onSuccess: (found, asked) => {
      setSent(asked);
      onPlan(found);
      if (found.start) onShow(found);
    },
    onError: () => onPlan(null),
  });
  useAgain(plan !== null && !ask.isPending ? sent : null, onPlan);
  const fault = ask.error ? faultOf(ask.error.message, ask.error instanceof ApiError ? ask.error.hint : "") : null;
  const set = (next: Wish): void => {
    setWish(next);
    if (ask.error) ask.reset();
  };
  const same = { wish, set, fault };
  return (
    <Card title="What if…" className="gantt-whatif" aside={plan ? <Button small kind="ghost" icon="close" onClick={() => onPlan(null)}>Clear</Button> : null}>
      <form onSubmit={(event) => { event.preventDefault(); ask.mutate(wish); }} noValidate>
        <Field {...same} name="request" label="Request" placeholder="nodes=1/core=2,walltime=1h" mono />
        <Field {...same} name="cpus" label="or CPUs" placeholder="1" />
        <Field {...same} name="mem" label="Memory" placeholder="1G" />
        <Field {...same} name="walltime" label="Walltime" placeholder="1h" />
        <Field {...same} name="queue" label="Queue" placeholder="default" list={queues} />
        <Field {...same} name="type" label="Type" placeholder="besteffort" list={["besteffort", "idempotent", "container", "deploy", "cosystem"]} />
        {fault && fault.field === null ? <div className="wrong" role="alert">{fault.text}{fault.hint ? <p className="muted">{fault.hint}</p> : null}</div> : null}
        <Button type="submit" kind="primary" disabled={ask.isPending}>{ask.isPending ? "Asking…" : "When would it run?"}</Button>
      </form>
      {plan && !ask.error ? <Found plan={plan} ends={ends} now={now} show={() => onShow(plan)} /> : <p className="faint">Nothing is submitted.</p>}
    </Card>
  );
}
