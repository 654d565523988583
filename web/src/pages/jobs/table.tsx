/** The table: its header, the rows in view, and keyboard and scrolling. */

import { type MouseEvent, type ReactNode, type RefObject } from "react";
import { Icon } from "../../ui/icons";
import { ORDERS, type Order, sorted } from "./filter";
import type { JobAt } from "./pages";
import { Row } from "./row";
import type { Rows } from "./scroll";
import { type Selection, has } from "./selection";
import { useNow } from "../../now";

const HEADERS: [name: string, text: string, by: Order | null][] = [
  ["id", "Id", "id"], ["state", "State", null], ["what", "Name and command", null], ["group", "Group", null],
  ["user", "User", null], ["queue", "Queue", null], ["priority", "Priority", "priority"],
  ["submitted", "Submitted", "submitted"], ["started", "Started", "started"], ["ended", "Ended", "ended"],
  ["wall", "Duration", "wall"], ["cpu", "CPU", "cpu"], ["memory", "Memory", "mem"], ["host", "Host", null],
  ["ending", "Result", null],
];
const RIGHT = ["priority", "submitted", "started", "ended", "wall", "cpu", "memory"];

interface TableProps {
  box: RefObject<HTMLDivElement | null>;
  rows: Rows;
  total: number;
  job: JobAt;
  sort: string;
  setSort: (sort: string) => void;
  selection: Selection;
  current: number;
  choose: (everything: boolean) => void;
  pick: (index: number, event: MouseEvent) => void;
  toggle: (index: number, range: boolean) => void;
  open: (index: number) => void;
}

function Header({ sort, setSort, selection, total, choose }: Pick<TableProps, "sort" | "setSort" | "selection" | "total" | "choose">): ReactNode {
  const some = !selection.all && selection.jobs.size > 0;
  return (
    <div className="job-row job-head" role="row" aria-rowindex={1}>
      <span className="check" role="columnheader">
        <label>
          <input
            type="checkbox" aria-label="Select all jobs that match" disabled={total === 0} checked={selection.all}
            ref={(input) => { if (input) input.indeterminate = some; }} onChange={() => choose(!selection.all && !some)}
          />
        </label>
      </span>
      {HEADERS.map(([name, text, by]) => {
        const place = `${name} ${RIGHT.includes(name) ? "right" : ""}`;
        if (by === null) return <span key={name} role="columnheader" className={`clip ${place}`}>{text}</span>;
        const way = sort === by ? "ascending" : sort === `-${by}` ? "descending" : "none";
        return (
          <span key={name} role="columnheader" className={place} aria-sort={way}>
            <button type="button" onClick={() => setSort(sorted(sort, by))} title={`Sort by ${ORDERS[by].toLowerCase()}`}>
              {text}
              <span className={`arrow ${way}`}><Icon name="down" size={11} /></span>
            </button>
          </span>
        );
      })}
    </div>
  );
}

/** Neighbours of the same gang are drawn together. */
function placeOf(job: JobAt, index: number): string {
  const gang = job(index)?.gang;
  if (!gang) return "";
  const [before, after] = [index > 0 && job(index - 1)?.gang === gang, job(index + 1)?.gang === gang];
  return before ? (after ? "middle" : "last") : after ? "first" : "only";
}

export function Table({ box, rows, total, job, sort, setSort, selection, current, choose, pick, toggle, open }: TableProps): ReactNode {
  const now = useNow();
  const shown = Array.from({ length: Math.max(0, rows.end - rows.first) }, (_, at) => rows.first + at);
  return (
    <div
      ref={box} className={`job-table ${rows.narrow ? "cards" : ""}`} role="grid" tabIndex={0} aria-label="Jobs"
      aria-rowcount={total + 1} aria-multiselectable="true" aria-activedescendant={current >= 0 ? `row-${current}` : undefined}
    >
      <Header sort={sort} setSort={setSort} selection={selection} total={total} choose={choose} />
      <div className="job-space" role="rowgroup" style={{ height: rows.height }}>
        <div className="job-rows" role="presentation" style={{ transform: `translateY(${rows.top}px)` }}>
          {shown.map((index) => {
            const each = job(index);
            return (
              <Row
                key={index} index={index} job={each} place={placeOf(job, index)} now={now} current={index === current}
                selected={each ? has(selection, each.id) : false} pick={pick} toggle={toggle} open={open}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}
