/** Ids as the manager's selectors say them. */

/** What one request may name. */
export const WORDS_MAX = 10_000;

/** `12-14` for neighbours, so that a long selection is few words. */
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
