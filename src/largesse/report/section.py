"""A section of the report: one module with its view and one template of the same name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from largesse.report.number_format import Units

Numbers: TypeAlias = Mapping[str, Any]  # the summaries of a run's steps as JSON types
Part: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Section:
    """A section of the report: the name of its module and template, its view, and its title in the list of contents.

    The view turns the numbers of the run into the text and the figures that the template shows; without a view it is left out.
    """

    name: str
    view: Callable[[Numbers, Units], Part | None]
    title: str
