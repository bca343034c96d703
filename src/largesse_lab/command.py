"""What `largesse experiment` does: run one by its name, and leave its results where they can be read, drawn and gone on with.

In a folder an experiment leaves its records (one line of JSON each, to go on from), its table as Markdown, its summary as
JSON with what made it, and its figures; `page` makes one page of all that a folder holds. Parts run by several processes
leave records of their own, which the run of the whole then finds.
"""

from __future__ import annotations

import datetime
import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from largesse.errors import InputError, Problem, nearest, refuse
from largesse.files import atomic_file

Tell = Callable[[str, float], None]
Records = list[dict[str, Any]]
PARTS = ("largesse", "numpy", "jax", "scikit-learn", "stochtree")  # whose versions are told with the results


@dataclass(frozen=True)
class Asked:
    """What the command line asked for; None is the experiment's own default."""

    simulations: Sequence[str] | None = None
    models: Sequence[str] | None = None
    repeats: int | None = None
    part: tuple[int, int] = (0, 1)
    chunk: int | None = None
    jobs: int | None = None  # processes that share the repeats; None: as many as there are cores, where there is no GPU
    mix: float | None = None
    kept: bool = False  # run nothing: only what is kept
    machine: str | None = None  # what it ran on, where that is not this machine
    out: Path | None = None
    command: str = ""

    def words(self, out: Path) -> list[str]:
        """Return the options that ask one process for the same, with results in a file or folder."""
        lists = {"--simulations": self.simulations, "--rows": self.models}
        # Commas part names: one that has a comma is known without it, too.
        told = {name: ",".join(one.replace(",", "") for one in given) for name, given in lists.items() if given}
        numbers = {"--repeats": self.repeats, "--chunk": self.chunk, "--mix": self.mix}
        told |= {name: str(number) for name, number in numbers.items() if number is not None}
        told |= {"--part": f"{self.part[0]}/{self.part[1]}", "--out": str(out)}
        return [word for pair in told.items() for word in pair]


@dataclass(frozen=True)
class Experiment:
    """Where an experiment lives, and what its function calls the things that can be asked for."""

    module: str
    words: Mapping[str, str]  # Asked's word → the function's

    def run(self, asked: Asked, out: Path | None, tell: Tell) -> Records:
        """Return its records."""
        given = {theirs: getattr(asked, ours) for ours, theirs in self.words.items()}
        given = {word: value for word, value in given.items() if value is not None}
        more = {"out": out} if "out" in self.words else {}
        return getattr(self._home(), self.module)(**(given | more), tell=tell)

    def in_two(self, asked: Asked) -> tuple[list[str], list[str]]:
        """Return the rows that are asked for: those whose grids are searched on the first repeats, and the others."""
        from largesse_lab.bench.repeats import TUNED
        from largesse_lab.bench.rows import named

        rows_of = getattr(self._home(), "ROWS", {})
        book = rows_of if isinstance(rows_of, Mapping) else {}
        rows = named(book, asked.models or list(book))
        many = asked.repeats is None or asked.repeats >= TUNED
        dear = [row for row in rows if many and bool(getattr(book.get(row), "tuned", False))]
        return dear, [row for row in rows if row not in dear]

    def table(self, records: Records) -> str:
        """Return its table."""
        return self._home().table(records)

    def summary(self, records: Records) -> dict[str, Any] | None:
        """Return its summary; None where it has none."""
        home = self._home()
        return home.summary(records) if hasattr(home, "summary") else None

    def _home(self) -> Any:
        return import_module(f"largesse_lab.{self.module}")


_REPEATED = {word: word for word in ("simulations", "repeats", "part", "chunk", "out")} | {"models": "rows"}
EXPERIMENTS = {
    "table1": Experiment("table1", _REPEATED),
    "table2": Experiment("table2", {**_REPEATED, "simulations": "sets"}),
    "kernels": Experiment("kernels", _REPEATED),
    "kappa": Experiment("kappa", {**_REPEATED, "simulations": "problems"}),
    "rates": Experiment("rates", {"repeats": "repeats", "out": "out"}),
    "rates_n": Experiment(
        "rates_n",
        {"simulations": "simulations", "models": "models", "repeats": "seeds", "part": "part", "out": "out"},
    ),
    "simulation": Experiment("simulation", {**_REPEATED, "models": "models", "repeats": "seeds"}),
    "coverage": Experiment(
        "coverage",
        {
            "simulations": "simulations",
            "models": "model",
            "repeats": "logs",
            "part": "part",
            "mix": "mix",
            "out": "out",
        },
    ),
    "lots": Experiment("lots", {"repeats": "logs", "out": "out"}),
    "real": Experiment("real", {}),
}
NAMES = (*EXPERIMENTS, "page")


def run(name: str, asked: Asked, tell: Tell) -> tuple[Records, str]:
    """Run an experiment; return its records and its table. With a folder to write to, leave everything there."""
    if name == "page":
        return [], _page(asked.out)
    if name not in EXPERIMENTS:
        raise InputError("experiment", [Problem(f"{name!r} is not known", nearest(name, NAMES))])
    refuse("experiment", _problems(asked))
    experiment, whole = EXPERIMENTS[name], asked.part == (0, 1)
    folder = None if asked.out is None or asked.out.suffix == ".jsonl" else asked.out
    kept = asked.out if folder is None else folder / (f"{name}.jsonl" if whole else _part_file(name, asked.part))
    if folder is not None and whole:
        jobs = _jobs(experiment, asked)
        if jobs > 1 and not asked.kept:
            share_out(name, replace(asked, jobs=jobs), folder, tell)
        _gather(folder, name)
    records = _read(kept) if asked.kept else experiment.run(asked, kept, tell)
    text = experiment.table(records)
    if folder is not None and whole:
        _leave(folder, name, records, text, asked)
    return records, text


def _problems(asked: Asked) -> list[Problem]:
    """Say which numbers are none of anything."""
    given = {"--repeats": asked.repeats, "--chunk": asked.chunk, "--jobs": asked.jobs}
    wrong = [Problem(f"{word} {n}", "1 or more") for word, n in given.items() if n is not None and n < 1]
    if asked.mix is not None and not 0 <= asked.mix <= 1:
        wrong.append(Problem(f"--mix {asked.mix:g}", "a share between 0 and 1"))
    if (asked.jobs or 1) > 1 and (asked.out is None or asked.out.suffix == ".jsonl"):
        wrong.append(Problem("several --jobs, but no folder to share", "give one by --out, as --out results"))
    return wrong


def _jobs(experiment: Experiment, asked: Asked) -> int:
    """Return how many processes share an experiment's repeats: more than one where cores, not a GPU, do the work."""
    from largesse.stats import cores

    if asked.jobs is not None:
        return asked.jobs
    if "part" not in experiment.words or asked.kept:
        return 1
    import jax

    many = cores() if jax.default_backend() == "cpu" else 1
    return many if asked.repeats is None else min(many, asked.repeats)


def share_out(name: str, asked: Asked, folder: Path, tell: Tell) -> None:
    """Have several processes run parts of an experiment, each of which knows what the whole has found so far.

    What has a grid to be searched on the first repeats waits for that; the others are run meanwhile.
    """
    from largesse_lab.bench.repeats import TUNED

    experiment = EXPERIMENTS[name]
    if "part" not in experiment.words:
        raise InputError("experiment", [Problem(f"{name} has no parts", "run it without --jobs")])
    experiment.run(replace(asked, repeats=0), None, tell)  # refuses at once what every process would refuse
    jobs = asked.jobs or 1
    dear, others = experiment.in_two(asked)
    if not dear:
        _run_parts(name, _parts(asked, jobs), folder, tell)
        return
    searches = [replace(asked, models=[row], repeats=TUNED) for row in dear]
    meanwhile = _parts(replace(asked, models=others), max(jobs - len(dear), 1)) if others else []
    _run_parts(name, [*searches, *meanwhile], folder, tell)
    _run_parts(name, _parts(replace(asked, models=dear), jobs), folder, tell)


def _parts(asked: Asked, many: int) -> list[Asked]:
    return [replace(asked, part=(i, many)) for i in range(many)]


def _run_parts(name: str, parts: Sequence[Asked], folder: Path, tell: Tell) -> None:
    """Run processes side by side, with files of their own in a folder that are gathered before and afterwards."""
    from largesse_lab.bench.jobs import command_of, run_all

    _gather(folder, name)
    whole = folder / f"{name}.jsonl"
    known = whole.read_text(encoding="utf-8") if whole.exists() else ""
    files = [folder / _part_file(name, (i, len(parts))) for i in range(len(parts))]
    for file in files:
        _write(file, known)
    commands = [command_of(["experiment", name, *part.words(file)]) for part, file in zip(parts, files, strict=True)]
    run_all(commands, files, tell)
    _gather(folder, name)


def _read(path: Path | None) -> Records:
    """Return the records that are kept in a file."""
    if path is None or not path.exists():
        hint = "give by --out the folder, or the .jsonl file, that a run has left"
        raise InputError("experiment", [Problem("no records are kept" + (f" in {path}" if path else ""), hint)])
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _part_file(name: str, part: tuple[int, int]) -> str:
    return f"{name}.{part[0]}-of-{part[1]}.jsonl"


def _gather(folder: Path, name: str) -> None:
    """Put the records that parts have left below those of the whole."""
    parts = sorted(folder.glob(f"{name}.*-of-*.jsonl"))
    if not parts:
        return
    whole = folder / f"{name}.jsonl"
    known = whole.read_text(encoding="utf-8").splitlines() if whole.exists() else []
    found = [line for part in parts for line in part.read_text(encoding="utf-8").rpartition("\n")[0].splitlines()]
    with atomic_file(whole) as target:
        target.write_text("".join(line + "\n" for line in dict.fromkeys([*known, *found])), encoding="utf-8")


def _leave(folder: Path, name: str, records: Records, text: str, asked: Asked) -> None:
    """Write the table, the summary with what made it, and the figures."""
    from largesse_lab.page.sections import section

    _write(folder / f"{name}.md", text)
    found = EXPERIMENTS[name].summary(records)
    if found is None:
        return
    result = {"experiment": name, "made": made(asked, records), "summary": found}
    _write(folder / f"{name}.json", json.dumps(result, ensure_ascii=False, indent=1) + "\n")
    for file, svg in section({**result, "file": f"{name}.json"}, ".").figures.items():
        _write(folder / file, svg + "\n")


def made(asked: Asked, records: Records) -> dict[str, Any]:
    """Return what made some records: the command, the machine, the day, how many repeats, and with which versions."""
    counted = {record[word] for record in records for word in ("repeat", "seed", "log") if word in record}
    return {
        "command": asked.command,
        "machine": asked.machine or _machine(),
        "date": datetime.date.today().isoformat(),
        "repeats": len(counted) or None,
        # Of another machine's they are not known here.
        "versions": {} if asked.machine else {part: found for part in PARTS if (found := _version(part)) is not None},
    }


def _machine() -> str:
    import jax

    device = jax.devices()[0]
    return device.device_kind if device.platform != "cpu" else f"{platform.machine()} CPU"


def _version(part: str) -> str | None:
    try:
        return metadata.version(part)
    except metadata.PackageNotFoundError:
        return None


def _write(path: Path, text: str) -> None:
    with atomic_file(path) as part:
        part.write_text(text, encoding="utf-8")


def _page(out: Path | None) -> str:
    from largesse_lab.page.page import page

    if out is None:
        raise InputError("experiment", [Problem("no folder with results", "give it by --out, as --out docs/results")])
    target = out.parent / f"{out.name}.md"
    page(out, target)
    return f"wrote {target}"
