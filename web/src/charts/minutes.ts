/** The counts of each of the last minutes, for charts and figures. */

export interface Minute {
  at: string;
  started: number;
  complete: number;
  failed: number;
  cancelled: number;
  wait_s: number; //: total wait of the started jobs, in seconds
  run_s: number; //: total run time of the ended jobs, in seconds
}

const MINUTE = 60_000;

/** One entry for every minute up to now, with empty ones for minutes without data. */
export function filled(told: readonly Minute[], now: number, n: number): Minute[] {
  const known = new Map(told.map((each) => [Math.floor(Date.parse(each.at) / MINUTE), each]));
  const last = Math.floor(now / MINUTE);
  return Array.from({ length: n }, (_, at) => {
    const minute = last - n + 1 + at;
    return known.get(minute) ?? {
      at: new Date(minute * MINUTE).toISOString(), started: 0, complete: 0, failed: 0, cancelled: 0, wait_s: 0, run_s: 0,
    };
  });
}

/** Drops the minutes before the first event, down to a minimum, so that a young deployment fills its charts. */
export function begun(minutes: readonly Minute[], fewest: number): readonly Minute[] {
  const first = minutes.findIndex(({ started, complete, failed, cancelled }) => started + complete + failed + cancelled > 0);
  const most = Math.max(0, minutes.length - fewest);
  return minutes.slice(first < 0 ? most : Math.min(first, most));
}

export const total = (minutes: readonly Minute[], what: Exclude<keyof Minute, "at">): number =>
  minutes.reduce((sum, each) => sum + each[what], 0);

/** The mean wait of the jobs that started in each minute; null where none did. */
export const waits = (minutes: readonly Minute[]): (number | null)[] =>
  minutes.map(({ started, wait_s }) => (started > 0 ? wait_s / started : null));

/** The end of the axis: a round number not below the largest value. */
export function ceiling(largest: number): number {
  if (largest <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(largest));
  return ([1, 2, 2.5, 5, 10].find((each) => each * power >= largest) ?? 10) * power;
}

/** Like `ceiling`, for seconds: minutes and hours are round too. */
export function roundTime(seconds: number): number {
  const steps = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400, 28_800, 86_400];
  return steps.find((each) => each >= seconds) ?? Math.ceil(seconds / 86_400) * 86_400;
}
