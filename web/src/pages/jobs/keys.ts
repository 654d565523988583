/** The keys of a table: j and k move, x selects, Enter opens, Escape clears. */

import { useEffect, useLayoutEffect, useRef } from "react";
import { typing } from "../../frame";
import { stepped } from "./selection";

interface TableKeys {
  count: number;
  /** Rows in view. */
  page: number;
  current: number;
  setCurrent: (index: number) => void;
  reveal: (index: number) => void;
  toggle: (index: number, range: boolean) => void;
  open: (index: number) => void;
  clear: () => void;
}

export function useTableKeys(keys: TableKeys): void {
  const latest = useRef(keys);
  // In the same render as the rows: a key may be pressed as soon as they are visible.
  useLayoutEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const { count, page, current, setCurrent, reveal, toggle, open, clear } = latest.current;
      const at = event.target as HTMLElement | null;
      const box = at instanceof HTMLInputElement && at.type === "checkbox";
      if ((typing(event) && !box) || event.metaKey || event.ctrlKey || event.altKey || document.querySelector("dialog[open]")) return;
      const next = stepped(event.key, current, count, page);
      if (next !== null) {
        event.preventDefault();
        setCurrent(next);
        reveal(next);
        return;
      }
      if (event.key === "Escape") clear();
      else if (current < 0 || current >= count) return;
      else if (event.key === "x" || event.key === "X") toggle(current, event.key === "X");
      else if (event.key === "Enter" && !at?.closest("button, a")) open(current);
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
}
