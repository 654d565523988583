/** The colours and patterns of a drawing, looked up once per theme, not for every bar. */

import { type Theme, colour } from "../../theme";
import { tone } from "../../states";
import type { Bar } from "./model";
import { type By, shade, valueOf } from "./palette";

export interface Inks {
  surface: string;
  stripe: string;
  line: string;
  strong: string;
  text: string;
  faint: string;
  accent: string;
  warn: string;
  bad: string;
  onBar: string;
  merged: string;
  gang: string; //: the line that joins the members of a gang
  hatch: CanvasPattern | string; //: over reserved bars
  down: CanvasPattern | string; //: hosts that cannot be used
  did: Record<string, CanvasPattern | string>; //: past states of hosts
  font: string;
  of: (bar: Bar) => string;
}

export function colourOf(value: string, by: By, theme: Theme): string {
  return by === "state" ? colour(tone(value)) : shade(value, theme);
}

/** Stripes at 45 degrees that meet at the edges of their tile. */
function stripes(ink: string, width: number, alpha: number): CanvasPattern | string {
  const tile = document.createElement("canvas");
  tile.width = 8;
  tile.height = 8;
  const pen = tile.getContext("2d");
  if (!pen) return ink;
  pen.strokeStyle = ink;
  pen.globalAlpha = alpha;
  pen.lineWidth = width;
  for (const shift of [-8, 0, 8]) {
    pen.beginPath();
    pen.moveTo(shift - 2, 10);
    pen.lineTo(shift + 10, -2);
    pen.stroke();
  }
  return pen.createPattern(tile, "repeat") ?? ink;
}

export function inks(theme: Theme, by: By): Inks {
  const known = new Map<string, string>();
  return {
    surface: colour("surface"),
    stripe: colour("bg"),
    line: colour("line"),
    strong: colour("line-strong"),
    text: colour("text"),
    faint: colour("text-3"),
    accent: colour("accent"),
    warn: colour("warn"),
    bad: colour("bad"),
    onBar: colour("surface"),
    merged: colour("run"),
    gang: colour("odd"),
    hatch: stripes(colour("surface"), 2, 0.5),
    down: stripes(colour("idle"), 1.5, 0.28),
    did: {
      drained: stripes(colour("warn"), 2, 0.4), draining: stripes(colour("warn"), 2, 0.4), suspected: stripes(colour("bad"), 2, 0.4),
      away: stripes(colour("bad"), 2, 0.4), asleep: stripes(colour("accent"), 1.5, 0.28), closed: stripes(colour("idle"), 1.5, 0.28),
      manual: stripes(colour("warn"), 3.5, 0.55), broken: stripes(colour("bad"), 3.5, 0.6), removed: stripes(colour("idle"), 3.5, 0.4),
      unseen: colour("sunken"), gone: colour("sunken"), unknown: colour("sunken"),
    },
    font: getComputedStyle(document.body).fontFamily,
    of: (bar) => {
      const value = valueOf(bar, by);
      let found = known.get(value);
      if (found === undefined) known.set(value, (found = colourOf(value, by, theme)));
      return found;
    },
  };
}
