"""Request of an experiment run, and the selection of its names, repeats and seeds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from largesse.errors import Problem, suggest

Records = list[dict[str, Any]]


def ignore_progress(_stage: str, _done: float, /) -> None:
    """Ignore a report of progress."""


@dataclass(frozen=True)
class Request:
    """Requested problems, models and repeats of an experiment run; None is the experiment's default."""

    problems: Sequence[str] | None = None  # names of simulations, data sets or problems
    models: Sequence[str] | None = None  # names of models or methods
    repeats: int | None = None  # repeats, seeds or logs
    part: tuple[int, int] = (0, 1)  # (i, n): every n-th repeat, from the i-th on
    chunk: int | None = None  # logs that are fitted together
    mix: float | None = None  # share of a simulated log whose levels are assigned uniformly at random
    seeds: tuple[int, int] | None = None  # random worlds: the first and the last seed
    sizes: Sequence[int] | None = None  # rows of each log
    out: Path | None = None  # the .jsonl file of the records

    def list_command_options(self, out: Path) -> list[str]:
        """Return the command-line options that repeat the request and write the records to `out`."""
        lists = {"--simulations": self.problems, "--models": self.models}
        # Commas separate names on the command line; a name that contains one is also known without it.
        options = {
            option: ",".join(name.replace(",", "") for name in names) for option, names in lists.items() if names
        }
        numbers = {"--repeats": self.repeats, "--chunk": self.chunk, "--mix": self.mix}
        options |= {option: str(number) for option, number in numbers.items() if number is not None}
        if self.seeds is not None:
            options["--seeds"] = f"{self.seeds[0]}-{self.seeds[1]}"
        if self.sizes:
            options["--rows"] = ",".join(map(str, self.sizes))
        options |= {"--part": f"{self.part[0]}/{self.part[1]}", "--out": str(out)}
        return [word for pair in options.items() for word in pair]


def match_names(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return names in their known spelling, without duplicates.

    Case and punctuation do not count; unknown names stay unchanged.

    >>> match_names(["averaged binary", "Images", "imges"], ["averaged, binary", "images"])
    ['averaged, binary', 'images', 'imges']
    """
    spellings = {_normalise_name(name): name for name in known}
    return list(dict.fromkeys(spellings.get(_normalise_name(name), name) for name in names))


def _normalise_name(name: str) -> str:
    return re.sub(r"[^a-z0-9.†]", "", name.lower())


def find_unknown_name_problems(kind: str, names: Sequence[str], known: Sequence[str]) -> list[Problem]:
    """Return one problem per unknown name, with a suggestion."""
    return [Problem(f"unknown {kind} {name!r}", suggest(name, known)) for name in names if name not in known]


def select_repeats_of_part(repeats: int, part: tuple[int, int]) -> list[int]:
    """Return the repeats of part i of n of an experiment: every n-th repeat, from the i-th on.

    >>> select_repeats_of_part(10, (1, 4))
    [1, 5, 9]
    """
    return list(range(repeats))[part[0] :: part[1]]


def select_requested_seeds(request: Request, first: int, n_seeds: int) -> list[int]:
    """Return the seeds that the requested part of an experiment measures.

    Without a range of seeds: `n_seeds` from `first` on, but no more than the requested repeats.

    >>> select_requested_seeds(Request(seeds=(3, 9), part=(1, 2)), 100, 20)
    [4, 6, 8]
    >>> select_requested_seeds(Request(seeds=(3, 9), repeats=0), 100, 20)
    []
    >>> select_requested_seeds(Request(repeats=3), 100, 2)
    [100, 101, 102]
    """
    n_seeds = n_seeds if request.repeats is None else request.repeats
    first, last = (first, first + n_seeds - 1) if request.seeds is None else request.seeds
    return list(range(first, last + 1))[: request.repeats][request.part[0] :: request.part[1]]


def split_chunks(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Split a sequence into chunks of at most `size` items.

    >>> list(split_chunks([1, 2, 3], 2))
    [[1, 2], [3]]
    """
    for first in range(0, len(items), size):
        yield items[first : first + size]
