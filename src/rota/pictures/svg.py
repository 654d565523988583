"""A schedule as SVG. One path per job keeps pictures of many jobs small."""

from __future__ import annotations

import re
from typing import Final

from rota.pictures.schedule import COLOURS, Box, Drawn, Layout, Picture, about, colour_of

#: Characters that XML 1.0 forbids even escaped.
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ENTITIES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})

_STYLE: Final = """\
text{font-family:"DejaVu Sans","Helvetica Neue",Arial,sans-serif;font-size:13px;fill:#333}
.title{font-size:19px;font-weight:600;fill:#111}.note{fill:#666}
.axis line{stroke:#ccd2d8}.frame{fill:none;stroke:#8a939b}
.jobs path{stroke:#000;stroke-opacity:.35;stroke-width:.6;vector-effect:non-scaling-stroke}
.dense path{stroke:none}
.names text{font-size:11px;fill:#1c2733;text-anchor:middle;pointer-events:none}
"""


def svg(picture: Picture) -> str:
    """The picture as an SVG file with tooltips."""
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', *drawing(picture, title="child"), ""])


def drawing(picture: Picture, *, title: str) -> list[str]:
    """The lines of the `svg` element. Tooltips are a `child` element, or an `attribute` for a script."""
    layout = Layout(picture)
    left, top, width, height = layout.left, layout.top, layout.plot_width, layout.plot_height
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="picture" width="{layout.width}" height="{layout.height}" '
        f'viewBox="0 0 {layout.width} {layout.height}">',
        f"<style>{_STYLE}{''.join(f'.c{n}{{fill:{colour}}}' for n, colour in enumerate(COLOURS))}</style>",
        f'<rect width="{layout.width}" height="{layout.height}" fill="#fff"/>',
        f'<text class="title" x="{left:g}" y="36">{escaped(picture.title)}</text>',
    ]
    if picture.note:
        lines.append(f'<text class="note" x="{left:g}" y="62">{escaped(picture.note)}</text>')
    lines.append('<g class="axis rows" text-anchor="end">')
    for tick in layout.row_ticks():
        y = top + tick.at
        lines.append(f'<text x="{left - 8:g}" y="{y + 4.5:.1f}">{escaped(tick.text)}</text>')
    middle = top + height / 2
    lines += [
        "</g>",
        f'<text text-anchor="middle" transform="translate(18 {middle:g}) rotate(-90)">'
        f"{escaped(picture.row_title)}</text>",
        '<g class="axis times" text-anchor="middle">',
    ]
    for tick in layout.time_ticks():
        x = left + tick.at
        lines.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:g}" y2="{top + height + 6:g}"/>')
        lines.append(f'<text x="{x:.1f}" y="{top + height + 22:g}">{escaped(tick.text)}</text>')
    lines += [
        "</g>",
        f'<text text-anchor="middle" x="{left + width / 2:g}" y="{top + height + 46:g}">time</text>',
        f'<svg class="plot" x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" preserveAspectRatio="none">',
    ]
    lines += _jobs(picture, layout, title=title)
    lines += [
        "</svg>",
        f'<rect class="frame" x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" '
        'pointer-events="none"/>',
    ]
    if not picture.drawn:
        lines.append(f'<text text-anchor="middle" x="{left + width / 2:g}" y="{middle:g}">no jobs</text>')
    return [*lines, "</svg>"]


def _jobs(picture: Picture, layout: Layout, *, title: str) -> list[str]:
    dense = len(picture.drawn) > 4000
    paths = [f'<g class="jobs{" dense" if dense else ""}">']
    names = ['<g class="names">']
    for job in picture.drawn:
        boxes = layout.boxes(job)
        if not boxes:
            continue
        tooltip = escaped(about(job))
        shape = "".join(_rectangle(box) for box in boxes)
        head = f'<path class="c{colour_of(job)}" d="{shape}"'
        if title == "child":
            paths.append(f"{head}><title>{tooltip}</title></path>")
        else:
            paths.append(f'{head} data-t="{tooltip}"/>')
        if name := _name(job, boxes):
            names.append(name)
    return [*paths, "</g>", *names, "</g>"]


def _rectangle(box: Box) -> str:
    x, y, width, height = (
        f"{value:.2f}".rstrip("0").rstrip(".") for value in (box.x, box.y, box.width, box.height)
    )
    return f"M{x} {y}h{width}v{height}h-{width}z"


def _name(job: Drawn, boxes: list[Box]) -> str:
    """The id of a job as text on it; empty if it does not fit."""
    box = max(boxes, key=lambda each: each.height)
    text = str(job.id)
    if box.height < 12 or box.width < 7 * len(text) + 4:
        return ""
    return f'<text x="{box.x + box.width / 2:.1f}" y="{box.y + box.height / 2 + 4:.1f}">{escaped(text)}</text>'


def escaped(text: str) -> str:
    """The text escaped for XML and HTML, also in attributes."""
    return _FORBIDDEN.sub("\ufffd", text).translate(_ENTITIES)
