/** Draws the plan on a canvas: only visible rows and bars, so that ten thousand bars stay smooth. */

import type { Inks } from "./inks";
import { gangLines, together } from "./gangs";
import { AXIS, type Laid, type Layout, extent, foot, rowAt } from "./layout";
import type { Bar, Piece } from "./model";
import { type Window, ticks } from "./scale";

export interface Scene {
  layout: Layout;
  view: Window;
  width: number;
  height: number;
  scroll: number;
  now: number;
  past: boolean; //: do the rows include past states of hosts?
  inks: Inks;
  dim: ((bar: Bar) => boolean) | null; //: selects the bars that the filter excludes
  moved: ReadonlySet<number>; //: jobs that the what-if job would move
  hover: Bar | null;
}

type Pen = CanvasRenderingContext2D;
/** About the width of a letter of the labels. */
const LETTER = 6.1;

function grid(pen: Pen, { view, width, height, inks }: Scene): void {
  pen.strokeStyle = inks.line;
  pen.lineWidth = 1;
  pen.beginPath();
  for (const { at } of ticks(view, width)) {
    const x = Math.round(((at - view.from) / (view.to - view.from)) * width) + 0.5;
    pen.moveTo(x, AXIS);
    pen.lineTo(x, height);
  }
  pen.stroke();
}

function axis(pen: Pen, { view, width, inks, now }: Scene): void {
  pen.fillStyle = inks.surface;
  pen.fillRect(0, 0, width, AXIS);
  pen.fillStyle = inks.line;
  pen.fillRect(0, AXIS - 1, width, 1);
  pen.textBaseline = "alphabetic";
  const scale = width / (view.to - view.from);
  const marks = ticks(view, width);
  for (const { at, text } of marks) {
    const x = (at - view.from) * scale;
    pen.font = `11px ${inks.font}`;
    pen.fillStyle = inks.faint;
    if (x < width - 34) pen.fillText(text, x + 4, AXIS - 11);
    pen.fillStyle = inks.strong;
    pen.fillRect(Math.round(x), AXIS - 7, 1, 6);
  }
  pen.font = `600 11px ${inks.font}`;
  pen.fillStyle = inks.text;
  let free = 4;
  for (const { at, day } of marks) {
    const x = Math.max(4, (at - view.from) * scale + 4);
    if (!day || x < free) continue;
    pen.fillText(day, x, 12);
    free = x + pen.measureText(day).width + 16;
  }
  const x = (now - view.from) * scale;
  if (x < 0 || x > width) return;
  pen.fillStyle = inks.bad;
  pen.beginPath();
  pen.moveTo(x - 5, AXIS - 8); // below the times, not over them
  pen.lineTo(x + 5, AXIS - 8);
  pen.lineTo(x, AXIS - 1);
  pen.fill();
}

function background(pen: Pen, scene: Scene, laid: Laid, y: number, odd: boolean): void {
  const { width, inks, view, past } = scene;
  if (odd) {
    pen.fillStyle = inks.stripe;
    pen.fillRect(0, y, width, laid.height);
  }
  const x = (at: number): number => ((at - view.from) / (view.to - view.from)) * width;
  const shift = y - laid.top;
  for (const bar of laid.row.states) {
    if (bar.end <= view.from || bar.start >= view.to) continue;
    pen.fillStyle = inks.did[bar.job.state] ?? inks.down;
    const left = Math.max(0, x(bar.start));
    pen.fillRect(left, y + 1, Math.max(1, Math.min(width, x(bar.end)) - left), laid.height - 2);
  }
  for (const bar of laid.row.merged) merged(pen, scene, laid, bar, x, shift);
  const gone = laid.row.down ? (past ? x(scene.now) : 0) : x(laid.row.until);
  if (gone < width) {
    pen.fillStyle = inks.down;
    pen.fillRect(Math.max(0, gone), y + 1, width, laid.height - 2);
  }
  for (const [from, to] of laid.row.down ? [] : laid.row.closed) {
    const [left, right] = [x(from), x(Math.min(to, laid.row.until))];
    if (right <= 0 || left >= width || right <= left) continue;
    pen.fillStyle = inks.down;
    pen.fillRect(Math.max(0, left), y + 1, Math.min(width, right) - Math.max(0, left), laid.height - 2);
  }
  pen.fillStyle = inks.line;
  if (laid.open)
    for (let core = 1; core < laid.row.cores; core += 1) pen.fillRect(0, Math.round(y - laid.top + extent(laid, core, core)[0]) - 1, width, 0.5);
  pen.fillRect(0, y + laid.height - 1, width, 1);
}

/** How much of a host was in use, drawn from the bottom of its row; failed attempts are red at the bottom. */
function merged(pen: Pen, { view, width, inks, hover }: Scene, laid: Laid, bar: Bar, x: (at: number) => number, shift: number): void {
  if (bar.end <= view.from || bar.start >= view.to) return;
  const left = Math.max(0, x(bar.start));
  const wide = Math.max(1, Math.min(width, x(bar.end)) - left);
  const room = laid.height - 4;
  const high = Math.max(2, (bar.share ?? 0) * room);
  const foot = laid.top + shift + laid.height - 2;
  pen.globalAlpha = hover === bar ? 0.85 : 0.6;
  pen.fillStyle = inks.merged;
  pen.fillRect(left, foot - high, wide, high);
  pen.globalAlpha = 1;
  if (bar.job.state !== "failed") return;
  pen.fillStyle = inks.bad;
  pen.fillRect(left, foot - 2, wide, 2);
}

const STRENGTH: Record<Bar["kind"], number> = { running: 0.94, ended: 0.52, reserved: 0.7, ghost: 0.25, planned: 0.34, merged: 1, state: 1 };

/** One rectangle of a bar, in the style of its kind. */
function block(pen: Pen, scene: Scene, bar: Bar, x: number, y: number, w: number, h: number): void {
  const { inks, dim, moved, hover } = scene;
  const faded = dim !== null && bar.kind !== "ghost" && dim(bar);
  const strength = faded ? 0.16 : 1;
  const ink = bar.kind === "ghost" ? inks.accent : inks.of(bar);
  const outlined = w > 5 && h > 5;
  const same = hover !== null && hover.job.id === bar.job.id && hover.kind === bar.kind && hover.attempt === bar.attempt;
  const lit = same || (hover !== null && together(hover, bar));
  if (bar.kind === "ghost") {
    pen.globalAlpha = 0.82;
    pen.fillStyle = inks.surface;
    pen.fillRect(x, y, w, h);
  }
  pen.fillStyle = ink;
  pen.globalAlpha = strength * STRENGTH[bar.kind];
  pen.fillRect(x, y, w, h);
  if (bar.kind === "ended" && bar.job.state !== "complete") {
    pen.globalAlpha = strength;
    pen.fillStyle = inks.bad;
    pen.fillRect(x, y + h - Math.min(3, h), w, Math.min(3, h));
  }
  if (bar.kind === "reserved") {
    pen.fillStyle = inks.hatch;
    pen.fillRect(x, y, w, h);
  }
  pen.globalAlpha = strength;
  if (outlined && (bar.kind !== "running" && bar.kind !== "ended" || bar.besteffort)) {
    pen.strokeStyle = bar.kind === "running" ? inks.surface : ink;
    pen.lineWidth = bar.kind === "ghost" ? 2 : 1;
    const dashed = bar.besteffort || bar.kind === "ghost";
    if (dashed) pen.setLineDash([4, 3]);
    const inset = bar.kind === "running" ? 1.5 : 0.5;
    pen.strokeRect(x + inset, y + inset, w - 2 * inset, h - 2 * inset);
    if (dashed) pen.setLineDash([]);
  }
  if (moved.has(bar.job.id) || lit) {
    pen.strokeStyle = lit ? inks.text : inks.warn;
    pen.lineWidth = 1.5;
    pen.strokeRect(x + 0.75, y + 0.75, Math.max(1, w - 1.5), Math.max(1, h - 1.5));
  }
  if (h >= 12 && w > 30) {
    const label = bar.kind === "ghost" ? bar.job.name : bar.job.name || `${bar.job.group} #${bar.job.id}`;
    const letters = Math.floor((w - 8) / LETTER);
    pen.fillStyle = bar.kind === "running" ? inks.onBar : inks.text;
    pen.fillText(label.length > letters ? `${label.slice(0, Math.max(1, letters - 1))}…` : label, x + 5, y + h / 2 + 0.5);
  }
  pen.globalAlpha = 1;
}

function pieces(pen: Pen, scene: Scene, laid: Laid, shift: number): void {
  const { view, width } = scene;
  const scale = width / (view.to - view.from);
  const draw = ({ bar, cores }: Piece): void => {
    if (bar.start > view.to || bar.end < view.from) return;
    const x = Math.max(-4, (bar.start - view.from) * scale);
    const right = Math.min(width + 4, (bar.end - view.from) * scale);
    const w = Math.max(1, right - x - (right - x > 4 ? 1 : 0));
    if (cores.length === 0) {
      const [y, h] = foot(laid);
      block(pen, scene, bar, x, y + shift, w, h);
    }
    for (const [first, last] of cores) {
      const [y, h] = extent(laid, first, last);
      block(pen, scene, bar, x, y + shift, w, h > 4 ? h - 1 : h);
    }
  };
  for (const piece of laid.row.pieces) draw(piece);
}

/** Joins the members of each gang where they begin, over all their rows. */
function gangs(pen: Pen, { layout, view, width, inks, hover }: Scene, shift: number): void {
  const scale = width / (view.to - view.from);
  for (const gang of gangLines(layout)) {
    const x = (gang.start - view.from) * scale;
    if (x < -2 || x > width + 2) continue;
    const lit = hover !== null && together(hover, gang.bar);
    pen.strokeStyle = inks.gang;
    pen.lineWidth = lit ? 3 : 2;
    pen.beginPath();
    pen.moveTo(x, gang.ends[0] + shift);
    pen.lineTo(x, gang.ends[1] + shift);
    pen.stroke();
    pen.fillStyle = inks.gang;
    for (const y of gang.members) {
      pen.beginPath();
      pen.arc(x, y + shift, lit ? 4 : 3, 0, 2 * Math.PI);
      pen.fill();
    }
  }
}

function nowLine(pen: Pen, { view, width, height, now, inks }: Scene): void {
  const x = Math.round(((now - view.from) / (view.to - view.from)) * width);
  if (x < 0 || x > width) return;
  pen.fillStyle = inks.bad;
  pen.fillRect(x - 0.5, AXIS, 1.5, height - AXIS);
}

export function paint(pen: Pen, scene: Scene): void {
  const { layout, width, height, scroll, inks } = scene;
  pen.fillStyle = inks.surface;
  pen.fillRect(0, 0, width, height);
  const shift = AXIS - scroll;
  const from = rowAt(layout, scroll);
  for (let at = from; at < layout.rows.length; at += 1) {
    const laid = layout.rows[at];
    if (!laid || laid.top + shift > height) break;
    background(pen, scene, laid, laid.top + shift, at % 2 === 1);
  }
  grid(pen, scene);
  pen.font = `500 11px ${inks.font}`;
  pen.textBaseline = "middle";
  for (let at = from; at < layout.rows.length; at += 1) {
    const laid = layout.rows[at];
    if (!laid || laid.top + shift > height) break;
    pieces(pen, scene, laid, shift);
  }
  gangs(pen, scene, shift);
  nowLine(pen, scene);
  axis(pen, scene);
}
