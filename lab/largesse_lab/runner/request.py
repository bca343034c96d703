"""The request that says what to measure, and the checks of names and parts that all experiments share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from largesse.errors import Problem, suggest

Records = list[dict[str, Any]]


def ignore_progress(_stage: str, _done: float, /) -> None:
    """Report progress to nobody."""


@dataclass(frozen=True)
class Request:
    """What to measure. None stands for the experiment's own default."""

    problems: Sequence[str] | None = None  # names of simulations, data sets or problems
    rows: Sequence[str] | None = None  # names of models
    repeats: int | None = None  # repeats, seeds or logs
    part: tuple[int, int] = (0, 1)  # (i, n): every n-th repeat, from the i-th on
    chunk: int | None = None  # logs that are fitted together
    mix: float | None = None  # share of a simulated log whose levels are assigned uniformly at random
    seeds: tuple[int, int] | None = None  # worlds drawn at random: the first and the last
    sizes: Sequence[int] | None = None  # rows of each log, where the experiment lets them be chosen
    out: Path | None = None  # the .jsonl file that keeps the records

    def as_options(self, out: Path) -> list[str]:
        """Return command-line options that request the same, with the records written to `out`."""
        lists = {"--simulations": self.problems, "--models": self.rows}
        # Commas separate names on the command line; a name that contains one is also known without it.
        options = {name: ",".join(one.replace(",", "") for one in given) for name, given in lists.items() if given}
        numbers = {"--repeats": self.repeats, "--chunk": self.chunk, "--mix": self.mix}
        options |= {name: str(number) for name, number in numbers.items() if number is not None}
        if self.seeds is not None:
            options["--seeds"] = f"{self.seeds[0]}-{self.seeds[1]}"
        if self.sizes:
            options["--rows"] = ",".join(map(str, self.sizes))
        options |= {"--part": f"{self.part[0]}/{self.part[1]}", "--out": str(out)}
        return [word for pair in options.items() for word in pair]


def simplify(name: str) -> str:
    """Return the name of a method or column without the parts that may be spelled in several ways.

    >>> simplify("Reward (m = 3)") == simplify("reward 3") == simplify("value 3"), simplify("√PEHE"), simplify("CCPOvIRE†")
    (True, 'pehe', 'ccpovire†')
    """
    bare = re.sub(r"[^a-z0-9.†]", "", re.sub(r"\bm\s*=", "", name.lower()))
    return re.sub(r"^value", "reward", bare)


def match_names(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return each name once, spelled as in `known`; unknown names stay as they are.

    >>> match_names(["averaged binary", "images", "imges"], ["averaged, binary", "images"])
    ['averaged, binary', 'images', 'imges']
    """
    spelled = {simplify(name): name for name in known}
    return list(dict.fromkeys(spelled.get(simplify(name), name) for name in names))


def find_unknown(word: str, names: Sequence[str], known: Sequence[str]) -> list[Problem]:
    """Return a problem for each name that is not known; `word` says what the names are names of."""
    return [Problem(f"{word} {name!r} is not known", suggest(name, known)) for name in names if name not in known]


def check_part(part: tuple[int, int]) -> list[Problem]:
    """Check that a part (i, n) satisfies 0 ≤ i < n."""
    if 0 <= part[0] < part[1]:
        return []
    return [Problem(f"part {part[0]} of {part[1]}", "the parts of n are numbered 0 to n − 1, as (0, 4)")]


def take_part(repeats: int, part: tuple[int, int]) -> list[int]:
    """Return the repeats of a part (i, n): every n-th, from the i-th on.

    >>> take_part(10, (1, 4))
    [1, 5, 9]
    """
    return list(range(repeats))[part[0] :: part[1]]


def take_seeds(request: Request, first: int, many: int) -> list[int]:
    """Return the seeds of a request's part: of those that it names, else of `many` from `first` on; no more than its repeats.

    >>> take_seeds(Request(seeds=(3, 9), part=(1, 2)), 100, 20), take_seeds(Request(seeds=(3, 9), repeats=0), 100, 20)
    ([4, 6, 8], [])
    >>> take_seeds(Request(repeats=3), 100, 2)
    [100, 101, 102]
    """
    wanted = many if request.repeats is None else request.repeats
    first, last = (first, first + wanted - 1) if request.seeds is None else request.seeds
    return list(range(first, last + 1))[: request.repeats][request.part[0] :: request.part[1]]


def cut(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Yield chunks of at most `size` items.

    >>> list(cut([1, 2, 3], 2))
    [[1, 2], [3]]
    """
    for first in range(0, len(items), size):
        yield items[first : first + size]
