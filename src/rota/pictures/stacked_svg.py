"""Stacked bars as SVG, with tooltips."""

from __future__ import annotations

from typing import Final

from rota.pictures.stacked import Bars, StackedBars, colour_of
from rota.pictures.svg import escaped

_STYLE: Final = """\
text{font-family:"DejaVu Sans","Helvetica Neue",Arial,sans-serif;font-size:13px;fill:#333}
.title{font-size:19px;font-weight:600;fill:#111}.note{fill:#666}.panel{font-weight:600}
.axis line{stroke:#ccd2d8}.frame{fill:none;stroke:#8a939b}.axis text{font-size:12px;fill:#555}
"""
_LETTER: Final = 7.4  #: points of a letter of a label


def stacked_svg(picture: StackedBars) -> str:
    """The picture as an SVG file."""
    bars = Bars(picture)
    left, width, height = bars.left, bars.plot_width, bars.panel_height
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" class="picture" width="{bars.width}" height="{bars.height}" '
        f'viewBox="0 0 {bars.width} {bars.height}">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{bars.width}" height="{bars.height}" fill="#fff"/>',
        f'<text class="title" x="{left}" y="36">{escaped(picture.title)}</text>',
        f'<text class="note" x="{left}" y="60">{escaped(picture.note)}</text>',
        *_legend(bars),
    ]
    for number, panel in enumerate(picture.panels):
        top = bars.top(number)
        lines.append(f'<text class="panel" x="{left}" y="{top - 10}">{escaped(panel.title)}</text>')
        lines.append('<g class="axis" text-anchor="end">')
        for percent in (0, 50, 100):
            y = top + height * (1 - percent / 100)
            lines.append(f'<line x1="{left - 5}" x2="{left + width}" y1="{y:g}" y2="{y:g}"/>')
            lines.append(f'<text x="{left - 9}" y="{y + 4:g}">{percent} %</text>')
        lines.append("</g>")
        lines += [
            f'<rect fill="{colour_of(each.part)}" x="{each.x:.2f}" y="{each.y:.2f}" width="{each.width:.2f}" '
            f'height="{each.height:.2f}"><title>{escaped(each.about)}</title></rect>'
            for each in bars.segments(number)
        ]
        lines.append('<g class="axis" text-anchor="middle">')
        lines += [
            f'<text x="{each.x:.1f}" y="{top + height + 18}">{escaped(each.text)}</text>'
            for each in bars.labels(number, letter=_LETTER)
        ]
        lines += ["</g>", f'<rect class="frame" x="{left}" y="{top}" width="{width}" height="{height}"/>']
    if not picture.panels:
        lines.append(f'<text x="{left}" y="{bars.top(0)}">nothing is known of this time</text>')
    return "\n".join([*lines, "</svg>", ""])


def _legend(bars: Bars) -> list[str]:
    x, lines = float(bars.left), ['<g class="axis">']
    for part in bars.legend():
        lines.append(f'<rect fill="{colour_of(part)}" stroke="#8a939b" x="{x:g}" y="78" width="12" height="12"/>')
        lines.append(f'<text x="{x + 18:g}" y="89">{escaped(part)}</text>')
        x += 18 + len(part) * _LETTER + 22
    return [*lines, "</g>"]
