"""Result page of the comparison with other packages: a figure, a table per log, and all losing cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from largesse_lab.experiments import random_world_comparison
from largesse_lab.pages.figures import FigureText, draw_intervals
from largesse_lab.pages.markdown import NUMBER_DASH, Section, format_mean, format_number, format_table
from largesse_lab.pages.method_comparison import Summary, keep_latest_records, list_distinct_values
from largesse_lab.runner.experiment_request import Records

HEAD_SETUP = """\
Plans of the default and of other packages' methods. On randomised logs all methods get the same rows, features, folds, allocation and
budgets (25 % and 50 % of the dearest level's cost). Rows are planned by models that did not see them, and all plans are judged by the
same doubly robust scores with known propensities. On random worlds, plans for 20,000 fresh customers are judged by the truth.
A method has ten minutes of one core for a log (all five folds) or a world, and 12 GB of memory.

- **Value** is the mean response per customer, **gain** that of the plan less the best uniform mix of levels at the same spend. Where costs
  depend on responses, or curves fall, plans of the same budget spend different amounts: then compare gains. Intervals are 95 %, by
  clusters, and averaged over splits into folds. A star marks a gain whose interval excludes zero.
- **Qini** (the dearest level against the cheapest; as CausalPFN's authors compute it: the mean of the curve over its end), **AUCC** and
  **MT-AUCC** (area under value against cost, both as shares of their ends; rows weighted by 1 / propensity) are 0.5 for a random order.
  They judge an order of customers, not a plan.
- **s** is processor time for five folds, **MB** the peak memory of the process (Python and largesse alone take about 180).
- **Skill** is 0 for the best uniform mix and 1 for the best plan made from the truth; in means it counts as −1 at least."""
END_NAMES = ("estimate", "low", "high")
HEAD_SOURCES = {
    "Thornton": "comes with largesse; causaldata on PyPI, `thornton_hiv`",
    "Karlan–Zinman": "replication data of Karlan and Zinman (AER 2008), CC BY 4.0",
    "Karlan–List": "replication data of Karlan and List (AER 2007), CC0",
    "RAND": "public use data of the RAND Health Insurance Experiment",
    "Hillstrom": "Kevin Hillstrom's e-mail challenge (2008), as in scikit-uplift's `fetch_hillstrom`",
    "STAR": "R package AER, `STAR`",
    "survey pay": "replication data of DellaVigna, List, Malmendier and Rao (2017)",
    "New Haven": "R package FindIt, `GerberGreen`",
}
HEAD_SETTINGS = {
    "auto": "largesse, `Stack()`: the default",
    "sklearn S-learner": "scikit-learn, histogram boosting with early stopping, monotone in the level",
    "sklearn T-learner": "scikit-learn, histogram boosting with early stopping for each level, then made monotone",
    "lightgbm": "LightGBM S-learner, 200 rounds at rate .05 with 15 leaves, monotone in the level (method advanced)",
    "xgboost": "XGBoost S-learner, 200 rounds at rate .05 with depth 4, monotone in the level",
    "perpetual": "Perpetual S-learner, budget .5 (its default: no tuning), monotone in the level",
    "DR-learner": "largesse's own: doubly robust scores by boosting, regressed by ridge",
    "bart": "stochtree, BART S-learner with calibrated probabilities",
    "econml DRLearner": "EconML, first stages chosen by its automatic search, boosting as final stage",
    "econml LinearDRLearner": "EconML, defaults",
    "econml CausalForestDML": "EconML, defaults, discrete treatment",
    "econml DRPolicyForest": "EconML, `PolicyForest` on the scores of its `DRLearner`, less price × cost at seven prices; its own plans",
    "econml DRPolicyTree": "EconML, `PolicyTree`, as DRPolicyForest",
    "causalml X-learner": "causalml, `BaseXRegressor` with XGBoost, propensities by its elastic net",
    "causalml R-learner": "causalml, `BaseRRegressor` with XGBoost, propensities by its elastic net",
    "causalml uplift forest": "causalml, `UpliftRandomForestClassifier` with 100 trees, otherwise defaults; 0/1 responses only",
    "stochtree BCF": "stochtree, `BCFModel`, 10 warm-start sweeps and 100 draws; without propensities for three or more levels",
    "TabPFN v2 S-learner": "tabpfn 2.0.9, `TabPFNRegressor` with one estimator and at most 10,000 rows; running maximum over levels",
    "DFCL": "re-implemented from arXiv 2407.13664: network with the policy-learning loss",
    "funnel product": "re-implemented after arXiv 2608.11675: probability × amount by monotone boosting; amounts only",
    "uniform": "largesse's own: the mean of each level, the same for all customers",
}


# -- the summary -------------------------------------------------------------------------------------------------------


def summarise_head_to_head(records: Records) -> dict[str, Any]:
    """Return the results on each real log, the summary of the random simulated worlds, and the logs without records."""
    records = keep_latest_records(records, ("log", "repeat", "model", "share"))
    of_worlds = [record for record in records if "world" in record]
    of_logs = [record for record in records if "world" not in record]
    done = [record for record in of_worlds if "failed" not in record]
    return {
        "models": list_distinct_values(records, "model"),
        "logs": [_summarise_log(of_logs, name) for name in list_distinct_values(of_logs, "log")],
        "missing": [name for name in HEAD_SOURCES if name not in list_distinct_values(of_logs, "log")],
        "worlds": random_world_comparison.summarise(done)["sizes"] if done else [],
        "memory": [_summarise_failures(of_worlds, size) for size in sorted(list_distinct_values(of_worlds, "rows"))],
        "lost regimes": [
            lost for size in sorted(list_distinct_values(done, "rows")) for lost in _find_lost_regimes(done, size)
        ],
    }


def _summarise_log(records: Records, name: str) -> dict[str, Any]:
    rows = [record for record in records if record["log"] == name]
    cells: dict[str, dict[str, Any]] = {}
    for model in list_distinct_values(rows, "model"):
        of_model = [row for row in rows if row["model"] == model]
        good = [row for row in of_model if "failed" not in row]
        cells[model] = {"splits": len({row["repeat"] for row in good})}
        if len(good) < len(of_model):
            cells[model]["failed"] = next(row["failed"] for row in of_model if "failed" in row)
        if not good:
            continue
        cells[model] |= {field: _average(good, field) for field in ("seconds", "megabytes", "qini", "aucc", "mt_aucc")}
        cells[model]["budgets"] = {
            f"{share:g}": {
                field: _average([row for row in good if row["share"] == share], field)
                for field in ("budget", "value", "spend", "gain", "lead")
            }
            for share in sorted(list_distinct_values(good, "share"))
        }
    facts = {field: rows[0][field] for field in ("log", "rows", "clusters", "levels")}
    return facts | {"splits": len(list_distinct_values(rows, "repeat")), "cells": cells}


def _average(rows: Records, field: str) -> Any:
    values = [row[field] for row in rows if field in row]
    return np.mean(values, axis=0).tolist() if values else None


def _summarise_failures(records: Records, size: int) -> dict[str, Any]:
    rows = [record for record in records if record["rows"] == size]
    models = {}
    for model in list_distinct_values(rows, "model"):
        of_model = [row for row in rows if row["model"] == model]
        failed = [row["failed"] for row in of_model if "failed" in row]
        memory = [row["megabytes"] for row in of_model if "failed" not in row]
        models[model] = {
            "megabytes": float(np.median(memory)) if memory else None,
            "failures": len(failed),
            "reason": failed[0] if failed else None,
        }
    return {"rows": size, "models": models}


def _find_lost_regimes(records: Records, size: int) -> list[dict[str, Any]]:
    """List categories of random simulated worlds in which a method has significantly more skill than the first."""
    rows = [record for record in records if record["rows"] == size]
    first = rows[0]["model"]
    lost = []
    for model in list_distinct_values(rows, "model")[1:]:
        pair = [row for row in rows if row["model"] in (first, model)]
        ordered = sorted(pair, key=lambda row: row["model"] != first)
        summary = random_world_comparison.summarise(ordered)["sizes"][0]
        lost += [
            {"rows": size, "model": model, **group}
            for group in summary["by regime"]
            if group.get("high") is not None and group["high"] < 0
        ]
    return lost


# -- the page ----------------------------------------------------------------------------------------------------------


def fill_head_to_head(section: Section, summary: Summary) -> None:
    """Add the figure, the tables of simulated worlds and logs, the losses and the settings to the result section."""
    if not summary.get("models"):
        return
    first = summary["models"][0]
    _add_worlds(section, summary)
    if summary["logs"]:
        section.add("## Real randomised logs", _tabulate_wins_and_losses(summary["logs"], summary["models"]))
        _draw_leads(section, summary["logs"], first)
        for log in summary["logs"]:
            section.add(*_write_log(log, first))
    if summary["missing"]:
        where = "; ".join(f"{name}: {HEAD_SOURCES[name]}" for name in summary["missing"])
        section.add(f"Not measured; the data are to be had here: {where}.")
    section.add(f"## Where `{first}` is behind", *list_lost_comparisons(summary))
    settings = [[model, HEAD_SETTINGS.get(model, NUMBER_DASH)] for model in summary["models"]]
    section.add("## Settings", format_table(["method", "package and settings"], settings, text_columns=2))


def _add_worlds(section: Section, summary: Summary) -> None:
    rows = []
    for size, memory in zip(summary["worlds"], summary["memory"], strict=True):
        first, n = size["first"], f"{size['rows']:,} rows"
        section.add(f"## {size['worlds']} random worlds of {n}", _write_worlds(size, memory))
        section.add(random_world_comparison.describe_lead(size))
        for name, cell in size["models"].items():
            lead = size["against"].get(name) or {}
            rows.append({"panel": f"mean skill, {n}", "label": name, "estimate": cell["skill"], **_take_ends(cell)})
            ends = {"estimate": lead.get("difference"), **_take_ends(lead)}
            rows.append({"panel": f"{first} − method, {n}", "label": name, **ends})
    if rows:
        title = "Mean skill on random worlds, by method and size of the log"
        note = "Left: mean skill with its 95 % interval. Right: paired difference on the same worlds."
        section.add_figure(partial(draw_intervals, rows, FigureText(title, "skill", note=note)), title)


def _take_ends(cell: Mapping[str, Any]) -> dict[str, Any]:
    return {"low": cell.get("low"), "high": cell.get("high")}


def _write_worlds(size: Summary, memory: Summary) -> str:
    body = []
    for name, facts in memory["models"].items():
        cell, lead = size["models"].get(name), size["against"].get(name)
        failures = NUMBER_DASH if not facts["failures"] else f"{facts['failures']}: {facts['reason']}"
        if cell is None:
            body.append([name, *[NUMBER_DASH] * 7, failures])
            continue
        difference = NUMBER_DASH if lead is None else _write_interval(lead["difference"], lead["low"], lead["high"])
        body.append(
            [
                name,
                format_mean(cell["skill"], cell["se"], 3),
                difference,
                *(format_number(cell[key], 3) for key in ("effects", "error")),
                f"{cell['bad']:.0%}",
                f"{cell['median seconds']:.2f}",
                f"{facts['megabytes']:.0f}",
                failures,
            ]
        )
    head = ["method", "skill ± se", f"{size['first']} − method", "relative RMSE of effects", "of curves"]
    return format_table([*head, "below −0.1", "median s", "MB", "failures"], body)


def _draw_leads(section: Section, logs: Sequence[Mapping[str, Any]], first: str) -> None:
    """Draw the first method's lead over each other method on each log, at the smallest budget."""
    rows = []
    for log in logs:
        for model, cell in log["cells"].items():
            leads = [budget["lead"] for budget in cell.get("budgets", {}).values()]
            if model != first and leads and leads[0]:
                rows.append({"panel": log["log"], "label": model, **dict(zip(END_NAMES, leads[0], strict=True))})
    if rows:
        title = f"Value of the plans of {first} minus those of each method, on real logs"
        note = "The smallest budget, in units of each log's response, with 95 % intervals."
        section.add_figure(partial(draw_intervals, rows, FigureText(title, "difference", note=note)), title, "logs")


def _tabulate_wins_and_losses(logs: Sequence[Mapping[str, Any]], models: Sequence[str]) -> str:
    """Return a table of the first method's wins and losses against each other method, over logs and budgets."""
    body = []
    for model in models[1:]:
        cells = [log["cells"][model] for log in logs if model in log["cells"]]
        budgets = [budget for cell in cells for budget in cell.get("budgets", {}).values()]
        leads = [budget["lead"] for budget in budgets if budget["lead"]]
        gains = [budget["gain"] for budget in budgets]
        counts = [
            len(leads),
            sum(lead[0] > 0 for lead in leads),
            sum(lead[1] > 0 for lead in leads),
            sum(lead[0] < 0 for lead in leads),
            sum(lead[2] < 0 for lead in leads),
            sum(gain[1] > 0 for gain in gains),
            sum(gain[2] < 0 for gain in gains),
            sum("budgets" not in cell for cell in cells),
        ]
        body.append([model, *map(str, counts)])
    head = ["method", "compared", f"{models[0]} ahead", "beyond the interval", f"{models[0]} behind", "beyond it"]
    return format_table([*head, "its gain proved", "its loss proved", "logs without plans"], body)


def _write_log(log: Mapping[str, Any], first: str) -> list[str]:
    shares = list(dict.fromkeys(share for cell in log["cells"].values() for share in cell.get("budgets", {})))
    clusters = "" if log["clusters"] is None else f" in {log['clusters']:,} clusters"
    splits = "one split" if log["splits"] == 1 else f"{log['splits']} splits"
    head = ["method"]
    for share in shares:
        head += [f"value at {float(share):.0%}", "gain", f"{first} − method"]
    body = []
    for model, cell in log["cells"].items():
        if "budgets" not in cell:
            body.append([model, cell["failed"], *[""] * (len(shares) * 3 + 4)])
            continue
        row = [model if cell["splits"] == log["splits"] else f"{model} ({cell['splits']} of {log['splits']} splits)"]
        for share in shares:
            budget = cell["budgets"][share]
            lead = budget["lead"]
            proved = "" if budget["gain"][1] <= 0 <= budget["gain"][2] else "*"
            gain = f"{budget['gain'][0]:+.2g}".replace("-", "−") + proved
            own = NUMBER_DASH if lead is None or model == first else _write_interval(*lead)
            value = "{} ({} to {})".format(*(f"{end:.3g}".replace("-", "−") for end in budget["value"]))
            row += [value, gain, own]
        qini = None if cell["qini"] is None else cell["qini"][-1]
        row += [_write_order(value) for value in (qini, cell["aucc"], cell["mt_aucc"])]
        body.append([*row, f"{cell['seconds']:.3g}", f"{cell['megabytes']:.0f}"])
    title = f"### {log['log']}"
    facts = f"{log['rows']:,} rows{clusters}, {log['levels']} levels, {splits} into folds."
    parts = [title, facts, format_table([*head, "Qini", "AUCC", "MT-AUCC", "s", "MB"], body)]
    if log["log"] == "Hillstrom":
        parts.append(_write_hillstrom(log))
    return parts


def _write_hillstrom(log: Mapping[str, Any]) -> str:
    """Return the Qini of both kinds of e-mail in Hillstrom's log, each also divided by the best method's Qini."""
    qini = {model: cell["qini"] for model, cell in log["cells"].items() if cell.get("qini")}
    best = np.nanmax(list(qini.values()), axis=0)
    body = [
        [model, *(f"{value:.3f} ({value / top:.3f})" for value, top in zip(pair, best, strict=True))]
        for model, pair in qini.items()
    ]
    text = "Qini of each e-mail against none, and in brackets relative to the best method here. CausalPFN's authors report .992 and .968."
    return text + "\n\n" + format_table(["method", "Womens E-Mail", "Mens E-Mail"], body)


def _write_order(value: float | None) -> str:
    return NUMBER_DASH if value is None or not np.isfinite(value) else format_number(value, 3)


def list_lost_comparisons(summary: Summary) -> list[str]:
    """List cases in which another method is better than the first: logs, simulated worlds and categories of worlds."""
    first, behind, clearly = summary["models"][0], 0, []
    for log in summary["logs"]:
        for model, cell in log["cells"].items():
            for share, budget in cell.get("budgets", {}).items():
                if model != first and budget["lead"] and budget["lead"][0] < 0:
                    behind += 1
                    if budget["lead"][2] < 0:
                        clearly.append(
                            f"{log['log']} at {float(share):.0%}: {model} ({_write_interval(*budget['lead'])})"
                        )
    parts = [
        f"On real logs, behind by the estimate in {behind} cases, and beyond the interval in {len(clearly)}"
        + (f": {'; '.join(clearly)}." if clearly else ".")
    ]
    for size in summary["worlds"]:
        ahead = [name for name, lead in size["against"].items() if lead and lead["difference"] < 0]
        names = ", ".join(ahead) or "no method"
        parts.append(f"On worlds of {size['rows']:,} rows, ahead in mean skill: {names}.")
    lost = [
        [
            f"{group['rows']:,}",
            f"{group['trait']}: {group['group']}",
            str(group["worlds"]),
            group["model"],
            _write_interval(group["difference"], group["low"], group["high"]),
        ]
        for group in summary["lost regimes"]
    ]
    if lost:
        text = "Groups of worlds in which a method is ahead beyond its 95 % interval; of some hundred groups, a few are so by chance."
        head = ["rows", "regime", "worlds", "method", f"{first} − method"]
        parts += [text, format_table(head, lost, text_columns=4)]
    return parts


def _write_interval(estimate: float, low: float, high: float) -> str:
    """Format a difference with its interval."""
    return "{} ({} to {})".format(*(f"{value:+.2g}".replace("-", "−") for value in (estimate, low, high)))
