"""The pages of results: files of results in; a page that lists them, a page for each experiment and its figures out.

A file of results is JSON with ``experiment``, ``made`` (command, machine, date, repeats, versions) and ``summary``. Pages are
listed in the order of the catalogue of experiments; words come from the experiments' chapters.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from largesse.errors import Problem, refuse
from largesse_lab.page.sections import Chapter, Result, write_section
from largesse_lab.page.tables import DASH, write_table
from largesse_lab.runner.process_pool import write_text

OPENING = """\
# The paper's experiments, repeated

These pages repeat the experiments of “Cost-Effective Incentive Allocation via Structured Counterfactual Inference” and
compare the paper's methods with ours on the same logs, with a page for each experiment. Our models are Stack, which combines
several models, and SIRE, a network. A problem is a simulation or a data set; names and measures are explained
[below](#how-to-read-these-pages). Beside them stand experiments of our own: models on worlds drawn at random, and the loop
from one campaign to the next.
"""

GUIDE = """\
## How to read these pages

**The paper's methods.**

- **IRE** (incentive response estimation) is a network that predicts a customer's response to every level. It is trained with
  a penalty, κ · HSIC, that makes its representation of the customer independent of the level that was assigned. **SIRE**
  (structured IRE) also keeps the response from falling as the level rises.
- **CCPO** (counterfactual constrained policy optimisation) chooses levels under a budget from such predictions. **CCPOvSIRE**
  and **CCPOvIRE** are CCPO via SIRE and via IRE: the paper's own methods, built as far as the paper describes them. The mark
  **†** means training without the penalty (κ = 0); **normalised** means the penalty of our own SIRE, taken of a representation
  that was brought to unit mean square.
- **CFRNet**, **GANITE**, **BART** and **BanditNet** are the methods that the paper compares with. BanditNet learns a policy
  directly and predicts no responses.

**Our models.** The rows **SIRE** and **Stack** are ours: SIRE as this package builds it, and Stack, the default model, which
combines several models. **logistic**, **additive**,
**boosting** and **Thresholds** are further models of this package.

**Rows without a model of the customers** show what a number is worth. **per-level mean** predicts the same curve for everybody
(**+ PAVA**: made non-falling), **uniform level** is the best mix of levels that ignores the customers, **random** draws levels
at random, and **oracle** plans with the true responses.

**The measures.** **RMSE** is the root mean squared error of predicted responses, over fresh customers and all levels.
**√PEHE** is that of the effect of level 1 over level 0, in a problem with these two levels alone. **Reward** is the true mean
response of the plan made from the predictions, at a budget of m per customer. **Skill** rescales the reward: 0 is the best
uniform mix of levels, 1 the best plan made from the truth.

**The numbers** are read from the files in [`{folder}`]({folder}), one for each experiment, which also hold the command that made
them. `largesse experiment page` writes this page and its figures from these files. Means are followed by ± one standard
deviation over repeats, as in the paper. Intervals are 95 % intervals of differences, paired repeat by repeat. The
paragraphs “Differences from the paper” are our reading of full runs on a GPU.
"""


NEEDED = ("experiment", "made", "summary")
Chapters = Mapping[str, Chapter]  # by the name of the experiment, in the order of the page


def write_page(folder: Path, out: Path, chapters: Chapters) -> None:
    """Write the page `out`, which lists all experiments, from the results in `folder`; next to the results, their pages and figures."""
    found = read_results(folder, chapters)
    where = Path(os.path.relpath(folder, Path(out).parent)).as_posix()
    back = Path(os.path.relpath(out, folder)).as_posix()
    for result in found:
        chapter = find_chapter(result.experiment, chapters)
        section = write_section(result, chapter, ".")
        for name, svg in section.figures.items():
            write_text(Path(folder) / name, svg + "\n")
        write_text(Path(folder) / name_page(chapter.title), _write_chapter(section.parts, back))
    parts = [OPENING, _write_runs(found, chapters, where), GUIDE.format(folder=where)]
    write_text(out, "\n\n".join(part.strip() for part in parts if part) + "\n")


def name_page(title: str) -> str:
    """Return the file of an experiment's page: its title in plain letters.

    >>> name_page("How much balance: κ")
    'how-much-balance-kappa.md'
    """
    plain = re.sub(r"[^\w\- ]", "", title.lower().replace("κ", "kappa"))
    return plain.replace(" ", "-") + ".md"


def _write_chapter(parts: Sequence[str], back: str) -> str:
    """Return the page of an experiment; headings are a rank higher than in a page that holds several."""
    heading, *rest = "\n\n".join(part.strip() for part in parts if part).split("\n\n")
    guide = (
        f"One of [the experiments]({back}), where [names and measures]({back}#how-to-read-these-pages) are explained."
    )
    return re.sub(r"^#(#+ )", r"\1", "\n\n".join([heading, guide, *rest]), flags=re.MULTILINE) + "\n"


def find_chapter(experiment: str, chapters: Chapters) -> Chapter:
    """Return the chapter of an experiment; an unknown one has its name as title."""
    return chapters.get(experiment, Chapter(experiment))


def read_results(folder: Path, chapters: Chapters) -> list[Result]:
    """Return the results of a folder, in the order of the chapters; refuse files that hold none."""
    results, problems = [], []
    for path in sorted(Path(folder).glob("*.json")):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            problems.append(Problem(f"{path.name} is not JSON: {error}", "run its experiment again, or move it away"))
            continue
        missing = [key for key in NEEDED if not isinstance(found, dict) or key not in found]
        if missing:
            problems.append(Problem(f"{path.name} has no {' and no '.join(missing)}", "move it out of the folder"))
        else:
            results.append(Result(found["experiment"], found["made"], found["summary"], path.name))
    if not results and not problems:
        hint = "run an experiment first, such as largesse experiment rates"
        problems.append(Problem(f"{folder} has no results", hint))
    refuse("results", problems)
    order = {name: place for place, name in enumerate(chapters)}
    return sorted(results, key=lambda result: (order.get(result.experiment, len(order)), result.file))


def _write_runs(results: Sequence[Result], chapters: Chapters, where: str) -> str:
    """Return a table of what was run: command, repeats, machine, date and versions."""
    rows = []
    for result in results:
        made, title = result.made, find_chapter(result.experiment, chapters).title
        versions = made.get("versions") or {}
        packages = ", ".join(f"{name} {version}" for name, version in versions.items())
        command = f"`{made['command']}`" if made.get("command") else DASH
        cells = [str(made.get(key) or DASH) for key in ("repeats", "machine", "date")]
        rows.append([f"[{title}]({where}/{name_page(title)})", command, *cells, packages or DASH])
    return write_table(["experiment", "command", "repeats", "machine", "date", "versions"], rows, words=6)
