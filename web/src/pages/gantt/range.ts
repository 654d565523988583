/** The shown range is in the address: a fixed one, or a span that follows the time. */

import { go } from "../../router";
import { SPAN, type Window, iso } from "./scale";

export function setRange(view: Window | null, span: string): void {
  const words = new URLSearchParams(window.location.search);
  for (const name of ["from", "to", "span"]) words.delete(name);
  if (view) {
    words.set("from", iso(view.from));
    words.set("to", iso(view.to));
  } else if (span !== SPAN) words.set("span", span);
  const text = words.toString();
  go(`/gantt${text ? `?${text}` : ""}`, { replace: true });
}
