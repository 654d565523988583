"""Picture files: the format follows from the suffix of the file name."""

from __future__ import annotations

from typing import Final

from rota.errors import BadInput
from rota.pictures.html import html
from rota.pictures.png import png
from rota.pictures.schedule import Picture
from rota.pictures.stacked import StackedBars
from rota.pictures.stacked_png import stacked_png
from rota.pictures.stacked_svg import stacked_svg
from rota.pictures.svg import svg

SUFFIXES: Final = (".png", ".svg", ".html")


def suffix_of(path: str) -> str:
    """The picture format that a file name asks for. Raises `BadInput`."""
    for suffix in SUFFIXES:
        if path.lower().endswith(suffix):
            return suffix
    raise BadInput(f"'{path}' is not the name of a picture file", hint=f"end it with {', '.join(SUFFIXES)}")


def rendered(picture: Picture, suffix: str) -> bytes:
    """The picture as a file of this format."""
    if suffix == ".png":
        return png(picture)
    text = html(picture) if suffix == ".html" else svg(picture)
    return text.encode("utf-8", "backslashreplace")


def rendered_bars(picture: StackedBars, suffix: str) -> bytes:
    """Stacked bars as a file of this format: .png or .svg."""
    if suffix == ".png":
        return stacked_png(picture)
    return stacked_svg(picture).encode("utf-8", "backslashreplace")
