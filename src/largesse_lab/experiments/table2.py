"""The paper's second experiment: nested labels as a log of incentives, for images and for text.

Each repeat draws another split and another log (see `data.nested`). Every model learns from the rows to train and to validate
on and is judged on the last fifth: RMSE over all levels against the truth, which is 0 or 1, and at each budget the reward of
the plan made from its curves and its skill. A policy network has no curves, and is trained once for each budget. Without the
data files a small generated set stands in for both, and the table says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from largesse.response import Thresholds
from largesse_lab.bench import rows as books
from largesse_lab.bench.repeats import Row, Source, Tell, Unit, repeated
from largesse_lab.nested.bandit import nested_bandit
from largesse_lab.nested.labelled import FILES, generated_nested, nested_here, read_nested
from largesse_lab.page import summaries
from largesse_lab.page.layout import Layout

BUDGETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
FIRST_DRAW = 100  # splits and logs of earlier draws were looked at while the models were made
GENERATED = "generated"
GENERATED_ROWS = 1500
SETS = (*FILES, GENERATED)
WIDE: dict[str, Any] = {**books.LITERAL, "width": 1024}  # the paper doubles its network for images
COLUMNS = {
    "rmse": "RMSE",
    **{f"value {budget:g}": f"reward, m = {budget:g}" for budget in BUDGETS},
    **{f"skill {budget:g}": f"skill, m = {budget:g}" for budget in BUDGETS},
}
PUBLISHED: summaries.Paper = {  # mean, standard deviation; the paper has no skill, and images alone
    "CCPOvSIRE": {"rmse": (0.2408, 0.0183), "value 1": (0.0934, 0.0225), "value 2": (0.1408, 0.0154)},
    "CCPOvSIRE†": {"rmse": (0.2740, 0.0255), "value 1": (0.0718, 0.0063), "value 2": (0.1186, 0.0198)},
    "CCPOvIRE": {"rmse": (0.2712, 0.0341), "value 1": (0.0839, 0.0137), "value 2": (0.1304, 0.0112)},
    "CCPOvIRE†": {"rmse": (0.2943, 0.0345), "value 1": (0.0674, 0.0112), "value 2": (0.1157, 0.0127)},
    "GANITE": {"rmse": (0.3449, 0.0236), "value 1": (0.0679, 0.0217), "value 2": (0.0968, 0.0367)},
    "BART": {"rmse": (0.2867, 0.0302), "value 1": (0.0492, 0.0217), "value 2": (0.0927, 0.0362)},
    "CFRNet": {"rmse": (0.2480, 0.0168), "value 1": (0.0861, 0.0220), "value 2": (0.1335, 0.0197)},
    "BanditNet": {"value 1": (0.0654, 0.0265), "value 2": (0.0997, 0.0367)},
}
NOTES = (
    "Mean ± standard deviation over repeats; each repeat is another split, log and start of the networks.",
    *books.NOTES,
    "Published numbers are of other images (VGG-16 features in 2,048 dimensions, a sample that is not published), and of a "
    "rate of right labels that one label in eleven cannot reach: the best reward, .1408, is above the share of animals here, "
    "1 in 11. Ours are embeddings in 1,280 (images) and 384 (text) dimensions. Compare rows with each other, not with the "
    "paper's column.",
)
STANDING_IN = "`generated` stands in where the data files are not here: its rows say nothing about images or text."
ROWS: dict[str, Row] = {**books.rows_of(WIDE), "Thresholds": Row(Thresholds, group="simple")}
LAYOUT = Layout(SETS, ROWS, COLUMNS, PUBLISHED)


def table2(
    sets: Sequence[str] = tuple(FILES),
    rows: Sequence[str] = tuple(ROWS),
    *,
    repeats: int = 20,
    part: tuple[int, int] = (0, 1),
    chunk: int = 10,
    out: str | Path | None = None,
    tell: Tell = lambda _what, _done: None,
) -> list[dict[str, Any]]:
    """Return one record per set, repeat and row; a set that is not here is generated instead.

    `rows` and `part` are those of `table1`. `chunk` logs are fitted together: an image log with its customers holds 24 MB of
    features, so that a GPU may have all at once.
    """
    here = list(dict.fromkeys(GENERATED if name in FILES and not nested_here(name) else name for name in sets))
    named, source = books.named(ROWS, rows), Source(unit, SETS, "set")
    return repeated(ROWS, here, named, repeats=repeats, part=part, chunk=chunk, out=out, tell=tell, source=source)


def unit(name: str, repeat: int) -> Unit:
    """Return one repeat of a set: another split, and another log."""
    found = generated_nested(GENERATED_ROWS) if name == GENERATED else read_nested(name)
    made = nested_bandit(found.features, found.nested_level, seed=FIRST_DRAW + repeat)
    return Unit(name, repeat, made.log, made, BUDGETS)


def summary(records: summaries.Records) -> dict[str, Any]:
    """Return means, deviations and paired differences, from CCPOvSIRE and of the rows that are to be ordered."""
    found = LAYOUT.summary(records)
    notes = [*NOTES, *([STANDING_IN] if GENERATED in found["simulations"] else []), *books.small_note(found)]
    return {**found, "notes": notes}


def table(records: summaries.Records) -> str:
    """Return the table as Markdown, one per set, the paper's own numbers beside."""
    return LAYOUT.table(summary(records))
