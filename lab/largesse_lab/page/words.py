"""The sentences of the page of results: its opening, and judgements put into words. Every number in them is computed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from largesse_lab.bench.request import simplify
from largesse_lab.page.compare import (
    BETTER,
    UNDECIDED,
    WORSE,
    Comparison,
    Duel,
    Standing,
    is_higher_better,
    judge_orderings,
    rank_model,
    title_column,
)

OPENING = """\
# The paper's experiments, repeated

These pages repeat the experiments of “Cost-Effective Incentive Allocation via Structured Counterfactual Inference” and
compare the paper's methods with ours on the same logs: first what came out, then how to read it, and a page for each
experiment. Our models are Stack, which combines several models, and SIRE, a network. A problem is a simulation or a data
set; names and measures are explained [below](#how-to-read-these-pages). Beside them stand experiments of our own: models on worlds
drawn at random, and the loop from one campaign to the next.
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
combines several models; a note below the table says where that was the default of an earlier version. **logistic**, **additive**,
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
deviation over repeats, as in the paper. Intervals are 95 % intervals of differences, paired repeat by repeat unless marked.
All verdicts are computed: “better” and “worse” mean that the interval excludes zero, “undecided” that it contains zero. The
paragraphs “Differences from the paper” are our reading of full runs on a GPU.
"""

SHRINKS = """\
HSIC has the scale of the representation it is taken of: the paper's penalty also falls when the representation shrinks. Our own
SIRE brings the representation to unit mean square first, so that its penalty falls only with dependence."""
BOTH = "Both forms were measured in the same models, each with its own κ."
GAINS = "RMSE with the penalty, compared with that of the same model without it (†), and 95 % intervals, paired unless marked:"
DEFAULT_NOTE = "† without the HSIC penalty (κ = 0). “–”: the paper has no such number, or the method has none."
KINDS = {"rmse": "RMSE", "skill": "skill"}  # how a column's name begins → what it is called
STANDING = {
    BETTER: "better than every method of the paper on",
    WORSE: "worse than at least one on",
    UNDECIDED: "undecided on",
}
SIMPLE = ("levelmean", "perlevelmean", "uniform")  # rows that need no model
MANY = 3  # methods that are counted instead of named


# -- the paper's orderings ---------------------------------------------------------------------------------------------


def count_orderings(duels: Sequence[Duel]) -> str:
    """Return a sentence on how many of the paper's orderings hold.

    >>> count_orderings([])
    'Of 0 orderings that the paper reports, 0 hold, 0 are reversed and 0 are undecided.'
    """
    number = {verdict: sum(duel.verdict == verdict for duel in duels) for verdict in (BETTER, WORSE, UNDECIDED)}

    def count(many: int, one: str, several: str) -> str:
        return f"{many} {one if many == 1 else several}"

    head = count(len(duels), "ordering that the paper reports", "orderings that the paper reports")
    holds, turned = count(number[BETTER], "holds", "hold"), count(number[WORSE], "is reversed", "are reversed")
    return f"Of {head}, {holds}, {turned} and {count(number[UNDECIDED], 'is', 'are')} undecided."


def list_orderings(duels: Sequence[Duel]) -> str:
    """Return a sentence on the orderings that hold on every simulation, and on those that are reversed on any."""
    claims: dict[str, list[str]] = {}
    for duel in duels:
        claim = f"{duel.first} before {duel.second} ({title_column(duel.column)})"
        claims.setdefault(claim, []).append(duel.verdict)
    holding = [claim for claim, verdicts in claims.items() if set(verdicts) == {BETTER}]
    turned = [claim for claim, verdicts in claims.items() if WORSE in verdicts]
    return f"Hold on every simulation: {_join(holding)}. Reversed on at least one: {_join(turned)}."


def _join(names: Sequence[str]) -> str:
    return "; ".join(names) or "none"


# -- our models against the paper's methods ----------------------------------------------------------------------------


def describe_standings(found: Comparison) -> str:
    """Return, for each of our models, where it is better than every method of the paper, worse than any, or undecided."""
    lines = []
    for name in found.ours:
        for kind in KINDS:
            standings = rank_model(found, name, kind)
            if standings:
                lines.append(f"- {name}, {KINDS[kind]}: {_describe_places(standings, kind)}.")
    return "\n".join(lines)


def _describe_places(standings: Sequence[Standing], kind: str) -> str:
    parts = []
    for verdict, words in STANDING.items():
        mine = [one for one in standings if one.verdict == verdict]
        places = [
            _describe_place(simulation, [one for one in mine if one.simulation == simulation], kind)
            for simulation in dict.fromkeys(one.simulation for one in mine)
        ]
        parts += [f"{words} {', '.join(places)}"] if places else []
    return "; ".join(parts)


def _describe_place(simulation: str, standings: Sequence[Standing], kind: str) -> str:
    """Return a simulation with its budgets (none for RMSE) and the methods that are better there."""
    inside = []
    for one in standings:
        budget = simplify(one.column).removeprefix(kind)
        rivals = one.better_rivals
        named = ", ".join(rivals) if len(rivals) < MANY else f"{len(rivals)} methods"
        inside.append(": ".join(filter(None, [budget, named])))
    details = ", ".join(filter(None, inside))
    return f"{simulation} ({'m = ' if kind == 'skill' else ''}{details})" if details else simulation


def brief_methods(summary: Comparison) -> str:
    """Return the sentences of the page's summary on an experiment that compares methods."""
    duels = judge_orderings(summary)
    parts = [count_orderings(duels)] if duels else []
    for name in summary.ours:
        counts = [_brief_standings(rank_model(summary, name, kind), kind) for kind in KINDS]
        if any(counts):
            parts.append(f"{name} is better than every method of the paper {' and '.join(filter(None, counts))}.")
    return " ".join(parts)


def _brief_standings(standings: Sequence[Standing], kind: str) -> str:
    if not standings:
        return ""
    best, worse = (sum(one.verdict == verdict for one in standings) for verdict in (BETTER, WORSE))
    where = "problems" if kind == "rmse" else "pairs of problem and budget"
    return f"in {KINDS[kind]} on {best} of {len(standings)} {where} (worse than at least one on {worse})"


# -- the paper's numbers -----------------------------------------------------------------------------------------------


def describe_factors(found: Comparison) -> str:
    """Return by which factor our RMSE and the paper's differ on each simulation: the geometric mean over its methods."""
    logs: dict[str, list[float]] = {}
    for (simulation, row, column), cell in found.cells.items():
        pair = found.printed(row, column)
        if pair is not None and simplify(column) == "rmse" and cell.mean > 0:
            logs.setdefault(simulation, []).append(abs(math.log(cell.mean / pair[0])))
    if len(logs) < 2:
        return ""
    factors = {name: math.exp(sum(mine) / len(mine)) for name, mine in logs.items()}
    listed = ", ".join(f"{name} {factors[name]:.1f}" for name in sorted(factors, key=lambda name: factors[name]))
    return f"Mean factor between our RMSE and the paper's, over the paper's methods, smallest first: {listed}."


def describe_simple(found: Comparison) -> str:
    """Return where rows that need no model are better than the best number of the paper."""
    places: dict[tuple[str, str], list[tuple[bool, str]]] = {}
    for (simulation, row, column), cell in found.cells.items():
        best, high = found.best_printed(column), is_higher_better(column)
        if best is not None and simplify(row).startswith(SIMPLE) and simplify(row).startswith("uniform") == high:
            better = cell.mean > best if high else cell.mean < best
            places.setdefault((row, column), []).append((better, f"{simulation} ({cell.mean:.4f})"))
    return "\n".join(_describe_simple_row(found, *key, mine) for key, mine in places.items())


def _describe_simple_row(found: Comparison, row: str, column: str, places: Sequence[tuple[bool, str]]) -> str:
    yes, no = (", ".join(name for is_better, name in places if is_better == better) for better in (True, False))
    verdict = "; ".join([*([f"better on {yes}"] if yes else []), *([f"not better on {no}"] if no else [])])
    best = f"the paper's best {title_column(column)}, {found.best_printed(column):.4f}"
    return f"- The row “{row}”, which needs no model, against {best}: {verdict}."


def describe_programme(found: Mapping[str, Any]) -> str:
    """Return how far the plans of the paper's dynamic programme are from ours."""
    return (
        f"The paper plans by a dynamic programme. On the first 500 customers, its plans and ours were made from the same "
        f"curves: predicted values differ by at most {found['most predicted lost']:.1e} ({found['n']:,} plans), and true "
        f"values by {found['mean true difference']:+.1e} on average.".replace("-", "−")
    )
