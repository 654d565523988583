/** A question in front of the page. The browser's own dialog keeps the focus and closes with Escape. */

import { type ReactNode, useEffect, useRef } from "react";
import "./dialog.css";

export function Dialog({ title, close, children, wide = false }: {
  title: string; close: () => void; children: ReactNode; wide?: boolean;
}): ReactNode {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    if (dialog && !dialog.open) dialog.showModal();
  }, []);
  return (
    <dialog
      ref={element} className={`dialog ${wide ? "wide" : ""}`} aria-label={title} onClose={close}
      onClick={(event) => { if (event.target === element.current) element.current?.close(); }}
    >
      <div>
        <h2>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}
