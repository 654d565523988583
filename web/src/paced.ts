/** Throttling: work that runs soon after a wake-up, however many wake-ups there are. */

/** Wake-ups within this time become one. */
const GATHER_MS = 40;
/** Slow work runs less often: it takes at most this share of the time. */
const SHARE = 1 / 4;

/** Runs `work` never twice at once, at most once in `everyMs`, and once more after the last wake-up. */
export function paced(everyMs: number, work: () => Promise<unknown>): { wake: () => void; stop: () => void } {
  let due: ReturnType<typeof setTimeout> | undefined;
  let busy = false;
  let again = false;
  let over = false;
  let free = 0;

  const wake = (): void => {
    again = true;
    if (!busy && !over) due ??= setTimeout(() => void run(), Math.max(GATHER_MS, free - Date.now()));
  };
  const run = async (): Promise<void> => {
    due = undefined;
    busy = true;
    again = false;
    const begun = Date.now();
    try {
      await work();
    } catch {
      // The work has reported its error; the next wake-up tries again.
    }
    busy = false;
    free = begun + Math.max(everyMs, (Date.now() - begun) / SHARE);
    if (again) wake();
  };
  return {
    wake,
    stop: () => {
      over = true;
      clearTimeout(due);
    },
  };
}
