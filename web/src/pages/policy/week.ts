/** Weekly hours as bands on the days of a week, only for the picture; the manager parses the text itself. */

export const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
const DAY = 24 * 60;

export interface Band {
  day: number;
  /** Minutes after midnight. */
  from: number;
  to: number;
}

const dayOf = (word: string): number => DAYS.findIndex((day) => word.startsWith(day));

function daysOf(text: string): number[] {
  if (text === "*") return [0, 1, 2, 3, 4, 5, 6];
  return text.split(",").flatMap((part) => {
    const [first = "", last = first] = part.split("-");
    const from = dayOf(first);
    const to = dayOf(last);
    if (from < 0 || to < 0) return [];
    return Array.from({ length: ((to - from + 7) % 7) + 1 }, (_, at) => (from + at) % 7);
  });
}

/** Hours that run past midnight become two bands. Invalid text gives no band. */
export function bands(period: string): Band[] {
  const words = period.trim().toLowerCase().replace(/\s*([-,])\s*/g, "$1").split(/\s+/);
  const hours = words.find((word) => word.includes(":"));
  const days = words.find((word) => !word.includes(":") && (word !== "*" || words.length === 1)) ?? "*";
  let from = 0;
  let to = DAY;
  if (hours) {
    const numbers = /^(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})$/.exec(hours)?.slice(1).map(Number);
    if (!numbers) return [];
    const [h = 0, m = 0, lastH = 0, lastM = 0] = numbers;
    from = h * 60 + m;
    to = lastH * 60 + lastM;
    if (to <= from) to += DAY;
  }
  return daysOf(days).flatMap((day) =>
    to <= DAY ? [{ day, from, to }] : [{ day, from, to: DAY }, { day: (day + 1) % 7, from: 0, to: to - DAY }]);
}
