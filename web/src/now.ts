/** The time, for ages, countdowns and axes. It stops while the connection to the manager is lost. */

import { useEffect, useState } from "react";
import { live, useLost } from "./live";

/** The current time, even without news from the manager. */
export function useClock(everyMs = 1000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** The same time, for code outside of React. */
export const known = (): number => Math.min(Date.now(), live.lost() ?? Infinity);

/** The time up to which the page is current. It stops when the feed does: a running clock would claim to know more. */
export function useNow(everyMs = 1000): number {
  const now = useClock(everyMs);
  return Math.min(now, useLost() ?? Infinity);
}
