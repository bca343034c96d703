"""Can the log carry the answer? Plain words, most serious first."""

from __future__ import annotations

import numpy as np

from largesse.errors import count
from largesse.levels import Levels
from largesse.records import Finding, Overlap, Scores

FEW_ROWS = 30
FEW_EFFECTIVE = 100.0
SMALL = 0.01
FEW_CLUSTERS = 30
HEAVY = 0.1  # share of all weight on the heaviest hundredth of the rows that makes an estimate hang on few rows
UNBALANCED = 0.1


def level_verdict(rows: float, effective: float, smallest: float) -> str:
    """Return fine, careful or no for one level of the log."""
    if rows < FEW_ROWS or effective < FEW_ROWS:
        return "no"
    return "careful" if effective < FEW_EFFECTIVE or smallest < SMALL else "fine"


def findings(seen: Overlap, scores: Scores, levels: Levels, notes: tuple[str, ...] = ()) -> tuple[Finding, ...]:
    """Return everything a reader of the evaluation must know about the log."""
    found = [*_thin_levels(seen, levels), *_weights(scores), *_clusters(scores), *_balance(seen)]
    if scores.propensity_source == "estimated":
        found.append(
            Finding(
                "note",
                "The log does not say how levels were chosen, so it was estimated from the features. "
                "If levels followed something that is not among them, the numbers here are biased.",
            )
        )
    found += [Finding("note", note[:1].upper() + note[1:] + ".") for note in notes]
    rank = {"no": 0, "careful": 1, "note": 2}
    return tuple(sorted(found, key=lambda finding: rank[finding.severity]))


def _thin_levels(seen: Overlap, levels: Levels) -> list[Finding]:
    found = []
    for name, rows, effective, smallest in zip(levels.labels, seen.rows, seen.effective, seen.smallest, strict=True):
        verdict = level_verdict(rows, effective, smallest)
        if verdict == "no":
            text = (
                f"Only {count(int(rows), 'row')} of the log (worth {effective:.0f} after weighting) had level {name!r}: "
                "what it brings cannot be told. Try it on more customers first."
            )
            found.append(Finding("no", text))
        elif verdict == "careful" and smallest < SMALL:
            text = (
                f"Some customers had almost no chance of getting level {name!r} (smallest propensity {smallest:.2g}): "
                "its value rests on few rows."
            )
            found.append(Finding("careful", text))
        elif verdict == "careful":
            found.append(
                Finding(
                    "careful",
                    f"Level {name!r} rests on few rows: its {count(int(rows), 'row')} are worth {effective:.0f} after weighting.",
                )
            )
    return found


def _weights(scores: Scores) -> list[Finding]:
    found = []
    heavy = np.sort(scores.weight / scores.propensity)[::-1]
    share = float(heavy[: max(len(heavy) // 100, 1)].sum() / heavy.sum())
    if share > HEAVY and len(heavy) >= 100:
        found.append(
            Finding("careful", f"One row in a hundred carries {share:.0%} of the weight: estimates hang on few rows.")
        )
    if scores.clipped:
        text = (
            f"{count(scores.clipped, 'row')} had an estimated propensity below 1 % and were treated as 1 %, which took away "
            f"{scores.clipped_weight:.1%} of all weight: "
            "levels that some customers hardly ever got are hard to judge."
        )
        found.append(Finding("careful" if scores.clipped > 0.01 * len(heavy) else "note", text))
    return found


def _clusters(scores: Scores) -> list[Finding]:
    if scores.cluster is None:
        return []
    clusters = len(np.unique(scores.cluster))
    if clusters >= FEW_CLUSTERS:
        return []
    return [Finding("careful", f"The rows come in only {count(clusters, 'cluster')}: intervals may be too narrow.")]


def _balance(seen: Overlap) -> list[Finding]:
    off = [name for name, after in zip(seen.features, seen.after, strict=True) if after > 2 * UNBALANCED]
    if not off:
        return []
    names = ", ".join(repr(name) for name in off[:3]) + (" and others" if len(off) > 3 else "")
    return [
        Finding(
            "careful",
            f"Customers of different levels still differ in {names} after weighting: comparisons between levels lean on the model there.",
        )
    ]
