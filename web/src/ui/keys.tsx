/** The list of keys. */

import type { ReactNode } from "react";
import { Dialog } from "./dialog";

export function Keys({ places, close }: { places: { name: string; key: string }[]; close: () => void }): ReactNode {
  const rows: [string, string][] = [
    ["/ or Ctrl K", "search"],
    ...places.map((each): [string, string] => [`g ${each.key}`, each.name]),
    ["j k", "next, previous row"],
    ["x", "select a row"],
    ["Enter", "open a row"],
    ["Esc", "clear the selection"],
    ["?", "this list"],
  ];
  return (
    <Dialog title="Keys" close={close}>
      <dl className="keys">
        {rows.map(([keys, what]) => (
          <div key={keys}>
            <dt>{keys.split(" ").map((key, at) => (key === "or" ? " or " : <kbd key={at}>{key}</kbd>))}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
