/** Accounting: use by user, project or queue, over time and in total. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import { ApiError, get } from "../api/client";
import type { AccountingView } from "../api/types";
import { duration, percent } from "../format";
import { useParam } from "../router";
import { Pick, Segments } from "../ui/form";
import { Button, Card, Command, Empty, Skeleton, Trouble } from "../ui/parts";
import { Figure, PageHead } from "../ui/sheet";
import { NAMES, amount } from "./accounting/amounts";
import { Bars } from "./accounting/bars";
import { PRESETS, type Range, ZONE, dateOf, isPreset, picked, rangeOf } from "./accounting/ranges";
import { MEASURES, SUBJECTS, type Subject, csv, isMeasure, isSubject, stack, totals, whole } from "./accounting/sums";
import { Table } from "./accounting/table";
import "./accounting/accounting.css";

const EVERY_MS = 30_000;
const LAYERS = 8;

function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** Group-by and range of the address; invalid values are ignored. */
function useQuestion(): { by: Subject[]; setBy: (by: Subject[]) => void; range: Range; preset: string; setPreset: (word: string) => void; days: [string, string]; setDay: (at: 0 | 1, day: string) => void } {
  const [words, setWords] = useParam("by", "user");
  const [preset, setPreset] = useParam("range", "7d");
  const named = words.split(",").filter(isSubject);
  const by: Subject[] = named.length ? SUBJECTS.filter((each) => named.includes(each)) : ["user"];
  const now = Math.floor(Date.now() / EVERY_MS) * EVERY_MS;
  const [first = "", last = ""] = preset.includes("..") ? preset.split("..") : [];
  const range = picked(first, last) ?? rangeOf(isPreset(preset) ? preset : "7d", now);
  const days: [string, string] = [dateOf(range.from), dateOf(range.to - 1)];
  return {
    by, setBy: (next) => setWords(next.join(",")), range, preset, setPreset, days,
    setDay: (at, day) => { if (day) setPreset(at === 0 ? `${day}..${days[1]}` : `${days[0]}..${day}`); },
  };
}

function By({ by, setBy }: { by: Subject[]; setBy: (by: Subject[]) => void }): ReactNode {
  return (
    <span className="account-by" role="group" aria-label="By">
      <span className="muted">By</span>
      {SUBJECTS.map((each) => (
        <label key={each}>
          <input type="checkbox" checked={by.includes(each)} disabled={by.length === 1 && by[0] === each}
            onChange={() => setBy(SUBJECTS.filter((other) => (other === each ? !by.includes(each) : by.includes(other))))} />
          {each}
        </label>
      ))}
    </span>
  );
}

export default function Accounting(): ReactNode {
  const { by, setBy, range, preset, setPreset, days, setDay } = useQuestion();
  const [asked, setMeasure] = useParam("show", "used_s");
  const measure = isMeasure(asked) ? asked : "used_s";
  const { data, error } = useQuery({
    queryKey: ["accounting", by.join(","), range.from, range.to, range.window],
    queryFn: ({ signal }) =>
      get<AccountingView>("/accounting", { from: new Date(range.from).toISOString(), to: new Date(range.to).toISOString(), window: range.window, zone: ZONE, by: by.join(",") }, signal),
    placeholderData: keepPreviousData,
  });
  const key = by.join(",");
  const all = useMemo(() => totals(data?.rows ?? [], key.split(",").filter(isSubject), measure), [data, key, measure]);
  const made = useMemo(
    () => stack(data?.rows ?? [], key.split(",").filter(isSubject), measure, { from: range.from, to: range.to, window: range.window, most: LAYERS }),
    [data, key, measure, range.from, range.to, range.window],
  );
  const sum = whole(all);

  return (
    <>
      <PageHead title="Accounting" about={`${days[0]} to ${days[1]}, by the ${range.window}, ${ZONE}`}>
        <By by={by} setBy={setBy} />
        <Segments label="Range" value={isPreset(preset) ? preset : ""} change={setPreset} options={Object.entries(PRESETS)} />
        <span className="account-days">
          <input type="date" className="input" aria-label="First day" value={days[0]} onChange={(event) => setDay(0, event.target.value)} />
          <span className="muted">–</span>
          <input type="date" className="input" aria-label="Last day" value={days[1]} onChange={(event) => setDay(1, event.target.value)} />
        </span>
        <Button disabled={!data?.rows.length} onClick={() => download(`rota-${days[0]}-${days[1]}.csv`, csv(data?.rows ?? [], by))}>CSV</Button>
      </PageHead>
      {error && !data ? (
        error instanceof ApiError && error.status === 404
          ? <Empty title="This manager keeps no accounts" icon="accounting">Its version is older than this page.</Empty>
          : <Trouble error={error} />
      ) : !data ? <Skeleton lines={8} /> : data.rows.length === 0 ? (
        <Empty title="Nothing was used in this time" icon="accounting">
          <p>Choose a longer range, or run something:</p>
          <Command text="rota add --project survey -- sleep 10" />
        </Empty>
      ) : (
        <div className="stack">
          <Card>
            <dl className="figures account-figures">
              <Figure name="Core-hours used" value={amount("used_s", sum.used_s)} more={`${percent(sum.used_s, sum.given_s)} of what was given`} />
              <Figure name="CPU hours" value={amount("cpu_s", sum.cpu_s)} more={`${percent(sum.cpu_s, sum.used_s)} of what was held`} />
              <Figure name="Jobs" value={amount("jobs", sum.jobs)} more={`${percent(sum.failed, sum.attempts)} of attempts failed`} />
              <Figure name="Mean wait" value={sum.attempts ? duration(sum.wait_s / sum.attempts) : "–"} more="of an attempt" />
            </dl>
          </Card>
          <Card title={NAMES[measure].name} aside={<Pick label="What is shown" value={measure} change={setMeasure} options={MEASURES.map((each) => [each, NAMES[each].name])} />}>
            <Bars made={made} measure={measure} daily={range.window === "day"} label={`${NAMES[measure].name} over time by ${by.join(", ")}`} />
          </Card>
          <Card title={`By ${by.join(", ")}`}>
            <Table all={all} by={by} measure={measure} choose={setMeasure} />
          </Card>
        </div>
      )}
    </>
  );
}
