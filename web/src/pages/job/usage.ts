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

/** The four values; null if unknown. */
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
 * Over-asking counts only if a user asked for the amount, and if more than `much` was wasted. `by` says what
 * was given: an amount, a walltime, or only the expected time, which is no limit.
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
  // A job of seconds may have a walltime of days.
  const scale = Math.max(used ?? 0, ...marks.filter((each) => each.name !== "walltime" || marks.length === 1).map((each) => each.value), 0) * 1.08;
  const found = { used, marks, scale };
  if (used === null || !given) return { ...found, verdict: "none", words: "" };
  const ratio = used / given;
  if (ratio > 1.001) {
    return by === "expected" ? { ...found, verdict: "good", words: `${times(ratio)}× as long as expected` } : { ...found, verdict: "lack", words: `${times(ratio)}× what it was given` };
  }
  if (!ended) return { ...found, verdict: "good", words: `${share(ratio)} so far` };
  // Learning gave more than the job asked for: not the job's fault.
  if (asked !== null && given <= asked && ratio < OVER_ASKED && given - used > much) {
    return { ...found, verdict: "over", words: used <= 0 ? "unused" : ratio < HARDLY ? "hardly used" : `was given ${times(given / used)}× as much` };
  }
  return { ...found, verdict: "good", words: `${share(ratio)} used` };
}
