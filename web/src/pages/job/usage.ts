/** What an attempt asked for, what was learned and what it used: as shares of one scale, and in a word. */

export type Verdict = "good" | "over" | "lack" | "none";

export interface Mark {
  name: "asked" | "default" | "learned" | "given" | "walltime";
  value: number;
}

export interface Usage {
  used: number | null;
  marks: Mark[];
  scale: number; //: what the whole width stands for
  verdict: Verdict;
  words: string;
}

/** Below this share of what it had, an attempt held much that others could have used. */
const OVER_ASKED = 0.5;
/** Below this, how many times as much it had says nothing. */
const HARDLY = 0.01;

const share = (ratio: number): string => (ratio > 0 && ratio < 0.01 ? "under 1 %" : `${Math.round(ratio * 100)} %`);
const times = (ratio: number): string => (ratio >= 10 ? String(Math.round(ratio)) : ratio.toFixed(1).replace(/\.0$/, ""));

/**
 * `given` is what the attempt really had. Over-asking is only the job's own where it `chose` the value, and where more
 * than `much` is at stake.
 */
export function usage(
  used: number | null,
  { asked, learned, given, walltime }: { asked?: number | null; learned?: number | null; given?: number | null; walltime?: number | null },
  { ended, much, chose }: { ended: boolean; much: number; chose: boolean },
): Usage {
  const marks: Mark[] = [];
  const add = (name: Mark["name"], value: number | null | undefined): void => {
    if (value) marks.push({ name, value });
  };
  add(chose ? "asked" : "default", asked);
  add("learned", learned);
  if (given !== asked && given !== learned) add("given", given);
  add("walltime", walltime);
  const room = given || asked || null;
  const scale = Math.max(used ?? 0, ...marks.filter((each) => each.name !== "walltime").map((each) => each.value), 0) * 1.08;
  if (used === null || room === null) return { used, marks, scale, verdict: "none", words: "" };
  const ratio = used / room;
  if (ratio > 1.001) return { used, marks, scale, verdict: "lack", words: `${times(ratio)}× what it had` };
  if (!ended) return { used, marks, scale, verdict: "good", words: `${share(ratio)} so far` };
  // More than it asked for is what learning thought right: no fault of the job's.
  if (chose && room <= (asked ?? 0) && ratio < OVER_ASKED && room - used > much) {
    return { used, marks, scale, verdict: "over", words: used <= 0 ? "unused" : ratio < HARDLY ? "hardly used" : `had ${times(room / used)}× as much` };
  }
  return { used, marks, scale, verdict: "good", words: `${share(ratio)} used` };
}
