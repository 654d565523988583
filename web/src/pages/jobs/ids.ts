/** Ids in the syntax of the manager's selectors. */

/** The most ids or ranges in one request. */
export const WORDS_MAX = 10_000;

/** Adjacent ids become a range, `12-14`, so that a long selection stays short. */
export function ranges(ids: Iterable<number>): string[] {
  const words: string[] = [];
  let low = 0;
  let high = -1;
  const put = (): void => {
    if (high >= low) words.push(low === high ? String(low) : `${low}-${high}`);
  };
  for (const id of [...new Set(ids)].sort((a, b) => a - b)) {
    if (id === high + 1) high = id;
    else {
      put();
      low = high = id;
    }
  }
  put();
  return words;
}
