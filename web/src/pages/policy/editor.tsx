/** A dialog that changes records: it shows errors, and closes after success. */

import { type FormEvent, type ReactNode, useState } from "react";
import { Dialog } from "../../ui/dialog";
import { Button, Trouble } from "../../ui/parts";
import { type Wanted, useSiteChange } from "./change";
import { Unclear } from "./words";

export function Editor({ title, close, make, children, wide = false, does = "Save", danger = false }: {
  title: string; close: () => void; make: () => Wanted; children: ReactNode; wide?: boolean; does?: string; danger?: boolean;
}): ReactNode {
  const { change, busy, error, conflict } = useSiteChange();
  const [unclear, setUnclear] = useState<Unclear | null>(null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    try {
      const wanted = make();
      setUnclear(null);
      change(wanted, close);
    } catch (problem) {
      if (!(problem instanceof Unclear)) throw problem;
      setUnclear(problem);
    }
  };
  return (
    <Dialog title={title} close={close} wide={wide}>
      <form className="editor" onSubmit={submit}>
        {children}
        {unclear ?? error ? <Trouble error={(unclear ?? error) as Error} /> : null}
        {conflict && !unclear ? (
          <Trouble error={new Unclear("Somebody else changed the site meanwhile", "Nothing was written. The page shows the new state; look at it, then save again.")} />
        ) : null}
        <div className="actions">
          <Button kind="ghost" onClick={close}>Cancel</Button>
          <Button kind={danger ? "danger" : "primary"} type="submit" disabled={busy}>{does}</Button>
        </div>
      </form>
    </Dialog>
  );
}

/** Confirms a removal. */
export function Removal({ title, close, make, children, does = "Remove" }: {
  title: string; close: () => void; make: () => Wanted; children?: ReactNode; does?: string;
}): ReactNode {
  return <Editor title={title} close={close} make={make} does={does} danger>{children}</Editor>;
}
