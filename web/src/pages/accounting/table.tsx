/** Use per owner, with the total in the footer. */

import type { ReactNode } from "react";
import { count, percent } from "../../format";
import { NAMES, leftOut, told } from "./amounts";
import { MEASURES, type Measure, type Subject, type Total, whole } from "./sums";

const MOST = 500;
const titled = (subject: string): string => subject.charAt(0).toUpperCase() + subject.slice(1);

export function Table({ all, by, measure, choose }: { all: Total[]; by: Subject[]; measure: Measure; choose: (measure: Measure) => void }): ReactNode {
  const sum = whole(all);
  return (
    <div className="sheet-scroll">
      <table className="sheet account-table">
        <thead>
          <tr>
            {by.map((subject) => <th key={subject}>{titled(subject)}</th>)}
            <th className="right">Part</th>
            {MEASURES.map((each) => (
              <th key={each} className="right" aria-sort={each === measure ? "descending" : undefined}>
                <button type="button" title={NAMES[each].about} onClick={() => choose(each)}>{NAMES[each].name}{each === measure ? " ↓" : ""}</button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {all.slice(0, MOST).map((total) => (
            <tr key={total.key}>
              {total.words.map((word, at) => <td key={at} className="who-cell"><div className="clip" title={word}>{word}</div></td>)}
              <td className="right muted nowrap">{percent(total[measure], sum[measure])}</td>
              {MEASURES.map((each) => <td key={each} title={each === "asked_s" ? leftOut(total) || undefined : undefined} className={`right nowrap ${each === "failed" && total.failed ? "failed" : ""}`}>{told(each, total)}</td>)}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr><td colSpan={by.length + 1}>Together</td>{MEASURES.map((each) => <td key={each} className="right nowrap">{told(each, sum)}</td>)}</tr>
        </tfoot>
      </table>
      {leftOut(sum) ? <p className="muted">Of what was asked: {leftOut(sum)}.</p> : null}
      {all.length > MOST ? <p className="muted">The first {MOST} of {count(all.length)}; the CSV file has all.</p> : null}
    </div>
  );
}
