/** The amounts of the job: asked, learned, and given to and used by its newest attempt. */

import type { ReactNode } from "react";
import type { AmountsView, JobView } from "../../api/types";
import { duration, size } from "../../format";
import { Card } from "../../ui/parts";
import type { Four } from "./usage";
import "./amounts.css";

export const cores = (value: number): string => (value > 0 && value < 0.01 ? "under 0.01" : `${value < 10 ? value.toFixed(2).replace(/\.?0+$/, "") || "0" : Math.round(value)}`);

const NOTHING: Four = { asked: null, learned: null, given: null, used: null };
const known = (four: Four): boolean => [four.asked, four.learned, four.given, four.used].some((each) => each !== null && each !== 0);

interface Line {
  name: string;
  four: Four;
  say: (value: number) => string;
}

/** The lines of the table; walltime and disk only if the job has them. */
export function amountLines(amounts: AmountsView, spread: boolean): Line[] {
  const { walltime_s: walltime, disk_bytes: disk } = amounts;
  const each = spread ? " a host" : "";
  return [
    { name: "cores", four: amounts.cores, say: cores },
    { name: `memory${each}`, four: amounts.mem_bytes, say: size },
    { name: "time", four: amounts.time_s, say: duration },
    ...(walltime.asked !== null || walltime.given !== null ? [{ name: "walltime", four: walltime, say: duration }] : []),
    ...(known(disk ?? NOTHING) ? [{ name: `disk${each}`, four: disk, say: size }] : []),
  ];
}

export function Amounts({ job }: { job: JobView }): ReactNode {
  if (!job.amounts) return null;
  const told = (value: number | null, say: (value: number) => string): ReactNode => (value === null ? <span className="faint">–</span> : say(value));
  return (
    <Card title="Resources">
      <div className="sheet-scroll">
        <table className="amounts num">
          <thead>
            <tr>
              <th><span className="hidden">What</span></th>
              <th title="What somebody wrote; a default is no wish">Asked</th>
              <th title="What its learning group says now">Learned</th>
              <th title="What its newest attempt was started with">Given</th>
              <th title="What that attempt took, as it was measured">Used</th>
            </tr>
          </thead>
          <tbody>
            {amountLines(job.amounts, job.request !== null).map(({ name, four, say }) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{told(four.asked, say)}</td><td>{told(four.learned, say)}</td><td>{told(four.given, say)}</td><td>{told(four.used, say)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}
