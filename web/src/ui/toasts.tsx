/** Short messages about the last action, with an undo button if it can be undone. */

import { type ReactNode, createContext, useCallback, useContext, useMemo, useState } from "react";
import { Icon } from "./icons";
import { Button } from "./parts";
import "./toasts.css";

interface Toast {
  id: number;
  text: string;
  bad: boolean;
  undo?: () => void;
  /** The label of the undo button. */
  label: string;
}

type Say = (text: string, more?: { bad?: boolean; undo?: () => void; label?: string }) => void;
const Saying = createContext<Say>(() => undefined);
export const useSay = (): Say => useContext(Saying);

const SHOWN_MS = 8000;
let last = 0;

export function Toasts({ children }: { children: ReactNode }): ReactNode {
  const [toasts, setToasts] = useState<Toast[]>([]);
  const drop = useCallback((id: number) => setToasts((all) => all.filter((each) => each.id !== id)), []);
  const say = useCallback<Say>(
    (text, { bad = false, undo, label = "Undo" } = {}) => {
      last += 1;
      const id = last;
      setToasts((all) => [...all.slice(-3), { id, text, bad, label, ...(undo ? { undo } : {}) }]);
      setTimeout(() => drop(id), SHOWN_MS);
    },
    [drop],
  );
  const value = useMemo(() => say, [say]);
  return (
    <Saying.Provider value={value}>
      {children}
      <div className="toasts" role="log" aria-live="polite">
        {toasts.map((each) => (
          <div key={each.id} className={`toast ${each.bad ? "bad" : ""}`}>
            <Icon name={each.bad ? "odd" : "complete"} />
            <span>{each.text}</span>
            {each.undo ? (
              <Button small kind="ghost" onClick={() => { each.undo?.(); drop(each.id); }}>{each.label}</Button>
            ) : null}
            <button type="button" onClick={() => drop(each.id)} aria-label="Dismiss">
              <Icon name="close" size={14} />
            </button>
          </div>
        ))}
      </div>
    </Saying.Provider>
  );
}
