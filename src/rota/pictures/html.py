"""A schedule as a self-contained HTML page with tooltips, zoom and pan."""

from __future__ import annotations

from typing import Final

from rota.pictures.schedule import STEPS_S, Layout, Picture
from rota.pictures.svg import drawing, escaped

_STYLE: Final = """\
body{margin:0;background:#f4f6f8;font-family:"DejaVu Sans","Helvetica Neue",Arial,sans-serif}
.picture{display:block;margin:16px auto;max-width:calc(100vw - 32px);height:auto;box-shadow:0 1px 4px #0003}
.plot{cursor:grab}.jobs path:hover{stroke:#000;stroke-opacity:1;stroke-width:1.6}
#tip{position:fixed;display:none;pointer-events:none;background:#1c2733;color:#fff;font-size:13px;padding:5px 9px;
border-radius:4px;max-width:60ch;overflow-wrap:anywhere}
p{text-align:center;color:#667;font-size:13px}
"""

_HOW: Final = "Point at a job to read about it; turn the wheel to zoom, drag to move, double-click to see all."

_SCRIPT: Final = """\
"use strict";
const [page, plot, times, names, tip] = [".picture", ".plot", ".times", ".names", "#tip"]
  .map(name => document.querySelector(name));
const space = "http://www.w3.org/2000/svg";
let low = VIEW.begin, high = VIEW.end;

function text(seconds) {
  let rest = Math.round(Math.abs(seconds) * 1000) / 1000, label = "";
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["m", 60]]) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count) label += count + unit;
  }
  rest = Math.round(rest * 1000) / 1000;
  if (rest || !label) label += rest + "s";
  return (seconds < 0 ? "-" : "") + label;
}

function add(name, attributes, content) {
  const made = document.createElementNS(space, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (content) made.textContent = content;
  times.appendChild(made);
}

function draw() {
  const span = high - low, whole = VIEW.end - VIEW.begin;
  plot.setAttribute("viewBox",
    [(low - VIEW.begin) / whole * VIEW.width, 0, span / whole * VIEW.width, VIEW.height].join(" "));
  names.style.display = span < whole * 0.999 ? "none" : "";
  const most = Math.max(Math.floor(VIEW.width / 130), 2);
  let step = span < 1 ? 1e-9 : VIEW.steps.find(s => span / s <= most) || VIEW.steps.at(-1);
  while (span / step > most) step *= 10;
  times.textContent = "";
  for (let n = Math.ceil(low / step); n * step <= high; n++) {
    const x = VIEW.left + (n * step - low) / span * VIEW.width;
    add("line", {x1: x, x2: x, y1: VIEW.top, y2: VIEW.top + VIEW.height + 6});
    add("text", {x: x, y: VIEW.top + VIEW.height + 22}, text(n * step));
  }
}

function view(from, to) {
  const whole = VIEW.end - VIEW.begin, span = Math.min(Math.max(to - from, whole / 1e6), whole);
  low = Math.min(Math.max(from, VIEW.begin), VIEW.end - span);
  high = low + span;
  draw();
}

function share(event) {
  const box = page.getBoundingClientRect(), scale = box.width / VIEW.page;
  return ((event.clientX - box.left) / scale - VIEW.left) / VIEW.width;
}

plot.addEventListener("wheel", event => {
  event.preventDefault();
  const factor = Math.exp(Math.sign(event.deltaY) * 0.25), here = low + share(event) * (high - low);
  view(here - (here - low) * factor, here + (high - here) * factor);
}, {passive: false});

let held = null;
plot.addEventListener("mousedown", event => { held = [share(event), low, high]; event.preventDefault(); });
window.addEventListener("mouseup", () => { held = null; });
window.addEventListener("mousemove", event => {
  if (held) {
    const moved = (held[0] - share(event)) * (held[2] - held[1]);
    view(held[1] + moved, held[2] + moved);
  }
  const tooltip = event.target.getAttribute && event.target.getAttribute("data-t");
  tip.style.display = tooltip ? "block" : "none";
  if (tooltip) {
    tip.textContent = tooltip;
    const right = event.clientX > window.innerWidth / 2;
    tip.style.left = right ? "auto" : event.clientX + 14 + "px";
    tip.style.right = right ? window.innerWidth - event.clientX + 14 + "px" : "auto";
    tip.style.top = Math.min(event.clientY + 14, window.innerHeight - 50) + "px";
  }
});
plot.addEventListener("dblclick", () => view(VIEW.begin, VIEW.end));
"""


def html(picture: Picture) -> str:
    """The picture as an HTML page."""
    layout = Layout(picture)
    view = (
        f'{{"begin": {layout.begin!r}, "end": {layout.end!r}, "left": {layout.left!r}, "top": {layout.top!r}, '
        f'"width": {layout.plot_width!r}, "height": {layout.plot_height!r}, "page": {layout.width!r}, '
        f'"steps": {list(STEPS_S)}}}'
    )
    return "\n".join(
        [
            "<!DOCTYPE html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{escaped(picture.title)}</title>',
            f"<style>{_STYLE}</style></head><body>",
            *drawing(picture, title="attribute"),
            f"<p>{_HOW}</p>",
            f'<div id="tip"></div><script>const VIEW = {view};\n{_SCRIPT}</script>',
            "</body></html>",
            "",
        ]
    )
