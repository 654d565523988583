/** The time, for ages, countdowns and axes. It stands still while nothing is heard of the manager. */

import { useEffect, useState } from "react";
import { live, useLost } from "./live";

/** The time of day, whatever is heard. */
export function useClock(everyMs = 1000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** For what draws without being asked. */
export const known = (): number => Math.min(Date.now(), live.lost() ?? Infinity);

/** The time up to which the page knows what happened: a clock that went on would tell what nobody knows. */
export function useNow(everyMs = 1000): number {
  const now = useClock(everyMs);
  return Math.min(now, useLost() ?? Infinity);
}
