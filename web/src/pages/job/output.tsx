/** The output of the job: both streams of each attempt, live while it runs. */

import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { address } from "../../api/client";
import type { JobView } from "../../api/types";
import { count, plural, size } from "../../format";
import { useParam } from "../../router";
import { useOnly } from "../../session";
import { Button, Card } from "../../ui/parts";
import { useSay } from "../../ui/toasts";
import { useFind } from "./find";
import { Lines } from "./lines";
import { Printed, type StreamName } from "./printed";
import { attemptsOf, isLive } from "./view";
import "./output.css";

function usePrinted(job: number, attempt: number, live: boolean): { printed: Printed; version: number } {
  const [printed] = useState(() => new Printed(job, attempt));
  useEffect(() => {
    printed.open();
    return () => printed.close();
  }, [printed]);
  useEffect(() => printed.follow(live), [printed, live]);
  return { printed, version: useSyncExternalStore(printed.watch, printed.now) };
}

function Tabs({ stream, choose, printed }: { stream: StreamName; choose: (s: string) => void; printed: Printed }): ReactNode {
  return (
    <div className="output-tabs" role="tablist" aria-label="Stream">
      {(["out", "err"] as const).map((each) => (
        <button
          key={each} type="button" role="tab" id={`tab-${each}`} aria-selected={stream === each} aria-controls="output-panel"
          tabIndex={stream === each ? 0 : -1} onClick={() => choose(each)}
          onKeyDown={(event) => {
            if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
            const other = each === "out" ? "err" : "out";
            choose(other);
            document.getElementById(`tab-${other}`)?.focus();
          }}
        >
          {each === "out" ? "stdout" : "stderr"}
          <span className="faint num">{printed.rows[each].next ? size(printed.rows[each].next) : "empty"}</span>
        </button>
      ))}
    </div>
  );
}

/** Saves the loaded text: while a job runs there is no stored output to link to. */
function save(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const STAGES = { loading: "loading", live: "live", reconnecting: "reconnecting", kept: "", failed: "cannot be read" } as const;

export function Output({ job }: { job: JobView }): ReactNode {
  const only = useOnly();
  const attempts = attemptsOf(job);
  const newest = attempts.at(-1)?.attempt ?? 0;
  // Errors are mostly on stderr. Chosen once, so that the view does not change while it is read.
  const [first] = useState(() => (job.state === "failed" && attempts.at(-1)?.stderr_bytes ? "err" : "out"));
  const [stream, setStream] = useParam("stream", first);
  const [chosen, setChosen] = useParam("attempt", "");
  const shown = attempts.some((each) => String(each.attempt) === chosen) ? Number(chosen) : newest;
  const live = isLive(job) && shown === job.attempt;
  const file = stream === "err" ? job.stderr : job.stdout;
  const lost = attempts.find((each) => each.attempt === shown)?.output_missing ?? null;
  const nothing = lost ? `It is missing: ${lost.message}.` : file ? "It is in that file."
    : live && job.state === "lost" ? "Its runner is silent: what it prints is not known."
    : live ? "Nothing printed yet." : "Nothing was printed.";
  const select = (
    <label className="output-attempt">
      <span className="muted">attempt</span>
      <select value={shown} onChange={(event) => setChosen(Number(event.target.value) === newest ? "" : event.target.value)}>
        {attempts.map((each) => (
          <option key={each.attempt} value={each.attempt}>{`${each.attempt} · ${each.state}`}</option>
        ))}
      </select>
    </label>
  );
  if (only !== null && only !== job.user)
    return <Card title="Output"><p className="muted">What a job prints can be read by its owner and by administrators. This one is {job.user}’s.</p></Card>;
  if (shown === 0) return <Card title="Output"><p className="muted">It has not run yet.</p></Card>;
  return (
    <Screen
      key={`${job.id}-${shown}`} job={job.id} attempt={shown} live={live} stream={stream === "err" ? "err" : "out"} choose={setStream}
      file={file} nothing={nothing} lost={lost !== null} select={attempts.length > 1 ? select : null}
    />
  );
}

function Screen({ job, attempt, live, stream, choose, file, nothing, lost, select }: {
  file: string | null; nothing: string; lost: boolean; select: ReactNode; job: number; attempt: number; live: boolean; stream: StreamName; choose: (stream: string) => void;
}): ReactNode {
  const { printed, version } = usePrinted(job, attempt, live);
  const [wrap, setWrap] = useState(true);
  const [following, setFollowing] = useState(true);
  const [busy, setBusy] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const say = useSay();
  const rows = printed.rows[stream];
  const lines = rows.rows.length;
  const name = `job-${job}-attempt-${attempt}.${stream}.txt`;
  const follow = useCallback((on: boolean) => setFollowing(on), []);
  const label = useMemo(() => `${stream === "err" ? "stderr" : "stdout"} of attempt ${attempt}`, [stream, attempt]);

  const more = useCallback(async (): Promise<void> => {
    const fromEnd = box.current ? box.current.scrollHeight - box.current.scrollTop : 0;
    await printed.earlier(stream);
    // Keep the visible rows in place.
    requestAnimationFrame(() => {
      if (box.current) box.current.scrollTop = box.current.scrollHeight - fromEnd;
    });
  }, [printed, stream]);
  const sought = useCallback(() => setFollowing(false), []);
  const finding = useFind(printed, stream, version, useMemo(() => ({ sought, more }), [sought, more]));
  const earlier = async (): Promise<void> => {
    setBusy(true);
    setFollowing(false);
    try {
      await more();
    } catch (error) {
      say((error as Error).message, { bad: true });
    } finally {
      setBusy(false);
    }
  };
  const copy = (): void => {
    void navigator.clipboard.writeText(rows.text()).then(
      () => say(`${plural(lines, "line")} copied`),
      () => say("the browser does not allow copying", { bad: true }),
    );
  };
  const leftOut = !lost && printed.written[stream] !== null && printed.stage === "kept" ? (printed.written[stream] ?? 0) - rows.next : 0;

  return (
    <Card
      title="Output" className="output"
      aside={
        <span className="output-aside">
          <span className={`output-stage ${printed.stage}`} role="status">{STAGES[printed.stage]}</span>
          {finding.field}
          {select}
        </span>
      }
    >
      {lost && lines > 0 ? <p className="output-lost output-note" role="alert">{nothing} A line marks each place.</p> : null}
      {file ? <p className="muted output-note">It is written to <code>{file}</code>.</p> : null}
      <div className="output-bar">
        <Tabs stream={stream} choose={choose} printed={printed} />
        <div className="output-tools">
          <label><input type="checkbox" checked={wrap} onChange={(event) => setWrap(event.target.checked)} /> wrap</label>
          {live ? (
            <label><input type="checkbox" checked={following} onChange={(event) => setFollowing(event.target.checked)} /> follow</label>
          ) : null}
          <Button small kind="ghost" icon="copy" onClick={copy} disabled={lines === 0}>Copy</Button>
          {live ? (
            <Button small kind="ghost" icon="down" onClick={() => save(name, rows.text())} disabled={lines === 0}>Save</Button>
          ) : (
            <a className="button small ghost" download={name} href={address(`/jobs/${job}/output/raw`, { stream, attempt })}>Download</a>
          )}
        </div>
      </div>
      <div id="output-panel" role="tabpanel" aria-labelledby={`tab-${stream}`} className="output-panel">
        {rows.first > 0 ? (
          <div className="output-more">
            <span className="muted num">{size(rows.first)} earlier</span>
            {rows.full ? <span className="muted">too much for a page: download it</span> : (
              <Button small disabled={busy} onClick={() => void earlier()}>{busy ? "Loading…" : "Load earlier"}</Button>
            )}
          </div>
        ) : null}
        {rows.forgot ? <p className="output-more muted">Earlier lines went to make room.</p> : null}
        {printed.binary[stream] ? <p className="output-more muted">This is not text. Download it to have it byte for byte.</p> : null}
        {lines > 0 ? (
          <Lines
            key={stream} rows={rows} version={version} wrap={wrap} following={following} follow={follow} label={label} box={box}
            hits={finding.hits} hit={finding.hit}
          />
        ) : (
          <p className={`output-empty ${lost ? "output-lost" : "muted"}`}>
            {printed.error ? printed.error.message : printed.stage === "loading" ? "Loading…" : nothing}
          </p>
        )}
        {live && !following && lines > 0 ? (
          <Button small kind="primary" icon="down" className="output-jump" onClick={() => setFollowing(true)}>Follow</Button>
        ) : null}
      </div>
      {leftOut > 0 ? (
        <p className="faint output-note">
          {count(leftOut)} bytes from the middle were not kept: there was too much. A line marks the place; the setting <code>keep_output</code> keeps more.
        </p>
      ) : null}
    </Card>
  );
}
