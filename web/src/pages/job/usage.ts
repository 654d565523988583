/** Asked, learned, given and used amounts of an attempt on one scale, with a short verdict. */

export type Verdict = "good" | "over" | "lack" | "none";

export interface Mark {
  name: "asked" | "learned" | "given" | "walltime" | "expected";
  value: number;
}

export interface Usage {
  used: number | null;
  marks: Mark[];
  scale: number; //: the amount at full width
  verdict: Verdict;
  words: string;
}

/** The four values; null where there is none. */
export interface Four {
  asked: number | null;
  learned: number | null;
  given: number | null;
  used: number | null;
}

/** An attempt that used less than this share of its allocation kept much from other jobs. */
const OVER_ASKED = 0.5;
/** Below this amount the ratio of given to used means nothing. */
const HARDLY = 0.01;

const share = (ratio: number): string => (ratio > 0 && ratio < 0.01 ? "under 1 %" : `${Math.round(ratio * 100)} %`);
const times = (ratio: number): string => (ratio >= 10 ? String(Math.round(ratio)) : ratio.toFixed(1).replace(/\.0$/, ""));

/**
 * Over-asking is only the job's own where somebody asked for it, and where more than `much` is at stake. `by` says what
 * was given: an amount, a walltime, or only the time that the job was expected to take, which ends nothing.
 */
export function usage(
  { asked, learned, given, used }: Four,
  { ended, much, by = "given" }: { ended: boolean; much: number; by?: "given" | "walltime" | "expected" },
): Usage {
  const marks: Mark[] = [];
  const add = (name: Mark["name"], value: number | null): void => {
    if (value) marks.push({ name, value });
  };
  add("asked", asked);
  add("learned", learned);
  add(by, given);
  // A walltime may be days for a job of seconds.
  const scale = Math.max(used ?? 0, ...marks.filter((each) => each.name !== "walltime" || marks.length === 1).map((each) => each.value), 0) * 1.08;
  const found = { used, marks, scale };
  if (used === null || !given) return { ...found, verdict: "none", words: "" };
  const ratio = used / given;
  if (ratio > 1.001) {
    return by === "expected" ? { ...found, verdict: "good", words: `${times(ratio)}× as long as expected` } : { ...found, verdict: "lack", words: `${times(ratio)}× what it was given` };
  }
  if (!ended) return { ...found, verdict: "good", words: `${share(ratio)} so far` };
  // More than it asked for is what learning thought right: no fault of the job's.
  if (asked !== null && given <= asked && ratio < OVER_ASKED && given - used > much) {
    return { ...found, verdict: "over", words: used <= 0 ? "unused" : ratio < HARDLY ? "hardly used" : `was given ${times(given / used)}× as much` };
  }
  return { ...found, verdict: "good", words: `${share(ratio)} used` };
}
