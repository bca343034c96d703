"""A drawing that stands for itself: what `.plot()` of a record gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from largesse.io import atomic_file
from largesse.records import Shown


@dataclass(frozen=True)
class Drawing:
    """A drawing as SVG: notebooks show it, `save` writes it."""

    svg: str = field(repr=False)

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write the drawing to a file, all of it or nothing, as a picture that needs nothing else."""
        with atomic_file(path) as part:
            part.write_text(self.svg, encoding="utf-8")


def draws(kind: type) -> Callable[[Callable[[Any], str]], Callable[[Any], str]]:
    """Let a function, which takes a record of this kind and returns an SVG, be how such records are drawn."""

    def note(draw: Callable[[Any], str]) -> Callable[[Any], str]:
        Shown.drawers[kind] = lambda record: Drawing(draw(record))
        return draw

    return note
