/** The elements of a session, page by page, filtered by state, stage and name. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef } from "react";
import { get } from "../../api/client";
import type { ElementPage, ElementView, PipelinePictureView } from "../../api/types";
import { count, duration, plural } from "../../format";
import { Link, useAddress, useParam } from "../../router";
import { Filter, Pick } from "../../ui/form";
import { Icon, STATE_ICONS } from "../../ui/icons";
import { Button, Card, Skeleton, StateBadge, Trouble } from "../../ui/parts";
import { useActing } from "./doing";
import { ELEMENT_STATES, meaningOf, wordOf } from "./words";

const ROWS = 50;

function Dots({ element, stages }: { element: ElementView; stages: readonly string[] }): ReactNode {
  return (
    <span className="dots">
      {stages.map((stage, at) => {
        const letter = element.statuses.charAt(at);
        const word = wordOf(letter);
        const job = element.jobs[at] ?? null;
        const title = `${stage}: ${meaningOf(letter)}${job === null ? "" : `, job ${job}`}`;
        const inside = <Icon name={word === "ahead" ? "more" : word === "pending" ? "dependent" : word === "checking" ? "search" : (STATE_ICONS[word] ?? "ready")} size={12} />;
        return job === null ? <span key={stage} className={`dot on-${word}`} title={title} role="img" aria-label={title}>{inside}</span>
          : <Link key={stage} to={`/jobs/${job}`} className={`dot on-${word}`} title={title} aria-label={title}>{inside}</Link>;
      })}
    </span>
  );
}

function About({ element, stages }: { element: ElementView; stages: readonly string[] }): ReactNode {
  const failed = element.statuses.indexOf("f");
  if (failed >= 0) return <>failed at {stages[failed]}</>;
  if (element.blocked_by) return <>blocked by <b>{element.blocked_by}</b>{element.blocked_at ? `, which failed at ${element.blocked_at}` : ""}</>;
  if (element.waits_for.length) return <>waits at {element.at} for {element.waits_for.join(", ")}</>;
  return element.at ? <>at {element.at}</> : <>–</>;
}

export function Elements({ picture }: { picture: PipelinePictureView }): ReactNode {
  const { query } = useAddress();
  const [state, setState] = useParam("state");
  const [stage, setStage] = useParam("stage");
  const [search, setSearch] = useParam("q");
  const [from, setFrom] = useParam("from", "0");
  const { act, busy, mine } = useActing(picture);
  const offset = Math.max(0, Number.parseInt(from, 10) || 0);
  const { data, error } = useQuery({
    queryKey: ["pipelines", picture.session, "elements", state, stage, search, offset],
    queryFn: ({ signal }) => get<ElementPage>(`/pipelines/${picture.session}/elements`, { state, stage, search, offset, limit: ROWS }, signal),
    placeholderData: keepPreviousData,
  });
  const box = useRef<HTMLDivElement>(null);
  const wanted = query.toString();
  // A link with a filter, such as a count of a stage, leads here.
  useEffect(() => {
    if (window.location.hash === "#elements") box.current?.scrollIntoView({ block: "start" });
  }, [wanted]);
  const change = (set: (value: string) => void) => (value: string): void => {
    setFrom("0");
    set(value);
  };
  const counted = (each: string): string => (stage ? each : `${each} (${count(picture.outcomes[each] ?? 0)})`);
  const total = data?.total ?? 0;
  return (
    <div ref={box} className="elements">
      <Card title="Elements" aside={<span className="faint num" role="status">{data ? plural(total, "element") : ""}</span>}>
        <div className="element-filters">
          <Filter label="Filter by name" value={search} change={change(setSearch)} />
          <Pick label="State" value={state} change={change(setState)} options={[["", "All states"], ...ELEMENT_STATES.map((each) => [each, counted(each)] as const)]} />
          <Pick label="Stage" value={stage} change={change(setStage)} options={[["", "Any stage"], ...picture.stages.map(({ name }) => [name, name] as const)]} />
          {state || stage || search || offset ? <Button kind="ghost" icon="close" onClick={() => { setState(""); setStage(""); setSearch(""); setFrom("0"); }}>Clear</Button> : null}
        </div>
        {error && !data ? <Trouble error={error} /> : null}
        {!data && !error ? <Skeleton lines={6} /> : null}
        {data && total === 0 ? <p className="muted">No element is like that.</p> : null}
        {data && data.elements.length ? (
          <div className="sheet-scroll" tabIndex={0} role="region" aria-label="Elements">
            <table className="sheet">
              <thead><tr><th>Element</th><th>State</th><th>{data.stages.length > 4 ? "Stages" : data.stages.join(" · ")}</th><th>Where</th><th className="right">Took</th><th><span className="hidden">Actions</span></th></tr></thead>
              <tbody>
                {data.elements.map((element) => (
                  <tr key={element.place}>
                    <td className="clip element-name" title={element.name}>{element.name}</td>
                    <td><StateBadge state={element.state} /></td>
                    <td><Dots element={element} stages={data.stages} /></td>
                    <td className="element-about muted"><About element={element} stages={data.stages} /></td>
                    <td className="num right nowrap">{element.took_s ? duration(element.took_s) : "–"}</td>
                    <td className="acts">
                      {mine && (element.state === "failed" || element.state === "terminated") ? (
                        <Button small kind="ghost" icon="retry" disabled={busy} aria-label={`Retry element ${element.name}`}
                          onClick={() => act({ action: "retry", elements: [element.name] }, `${element.name} tries again`)}>Retry</Button>
                      ) : null}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ) : null}
        {total > ROWS || offset > 0 ? (
          <div className="element-pages">
            <Button small icon="left" disabled={offset === 0} onClick={() => setFrom(String(Math.max(0, offset - ROWS)))}>Previous</Button>
            <span className="num muted">{count(Math.min(total, offset + 1))}–{count(Math.min(total, offset + ROWS))} of {count(total)}</span>
            <Button small disabled={offset + ROWS >= total} onClick={() => setFrom(String(offset + ROWS))}>Next <Icon name="right" size={14} /></Button>
          </div>
        ) : null}
      </Card>
    </div>
  );
}
