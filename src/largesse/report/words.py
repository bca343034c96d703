"""The answer in sentences: what the plan brings, whether targeting pays, and what to look out for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from largesse.report.formats import Units, finite, write_percent

Part: TypeAlias = Mapping[str, Any]
MUCH = 0.95  # a plan that uses less of its budget than this gets a note
URGENT = ("no", "careful")  # answers of warnings, the most serious first


def write_value(units: Units, value: Part) -> str:
    """Write an estimated response with as many digits as its interval deserves."""
    return units.value_style(value).text(value["estimate"])


def write_interval(units: Units, value: Part) -> str:
    """Write the interval of an estimated response."""
    return units.value_style(value).interval(value)


def write_gain(units: Units, gain: Part) -> str:
    """Write a difference with its interval, signed: +1.1 pp (−1.3 to +3.5 pp)."""
    return units.gain_style(gain).both(gain, signed=True)


def write_headline(units: Units, numbers: Part) -> str:
    """Return the verdict in one sentence: whether choosing who gets what beats treating everyone alike at the same cost."""
    same, rule = numbers["versus"][0], find_advised_rule(numbers["safety"])
    judged, between = judge(same["difference"]), write_gain(units, same["difference"])
    if judged == "pays":
        return f"Choosing who gets what pays: {between} over {same['name']} at the same cost."
    if judged == "equal":
        return "There is nothing to choose at this budget: everyone is treated alike."
    if rule:
        return f"A simple rule pays: at least {write_least(units, rule)} at the same cost, with 95 % confidence."
    if judged == "loses":
        do = "Draw levels at random" if is_mixed(same) else "Give everyone the same"
        return f"{do}: choosing who gets what loses at the same cost, {between}."
    return "The log does not show that choosing who gets what pays."


def write_verdict(units: Units, numbers: Part) -> str:
    """Say what stands behind the headline: the comparison, what the plan gains at least, and what is advised."""
    same, rule = numbers["versus"][0], find_advised_rule(numbers["safety"])
    judged, between = judge(same["difference"]), write_gain(units, same["difference"])
    alike = f"{_write_alike(same)} at the same cost ({same['detail']})"
    chosen = "this plan" if rule else "choosing who gets what"
    advice = f"The rule: {rule['detail']}." if rule else ""
    if judged == "pays":
        least = write_least(units, numbers["safety"]["options"][0])
        found = f"It gains at least {least} over {alike}, with 95 % confidence."
        if rule:
            advice = f"A simple rule gains at least {write_least(units, rule)}. {advice}"
    elif judged == "equal":
        found = f"The plan is the same for everyone ({same['detail']})."
        if rule:
            advice = f"A simple rule gains at least {write_least(units, rule)}, with 95 % confidence. {advice}"
    elif judged == "loses":
        found = f"Compared with {alike}, {chosen} brings {between}."
    else:
        found = f"Compared with {alike}, {chosen} brings {between}: the difference may be nothing."
        advice = advice or "The simpler plan is as good a choice."
    return f"{found} {advice}".strip()


def is_mixed(reference: Part) -> bool:
    """Whether a reference draws levels at random, instead of giving everybody the same one."""
    return bool(reference["name"] != "everyone the same")


def _write_alike(same: Part) -> str:
    return "a random mix of levels" if is_mixed(same) else "giving everyone the same"


def judge(gain: Part) -> str:
    """Return what an interval says of a gain: it pays, loses, is nothing at all ("equal"), or is not shown ("open")."""
    low, high = finite(gain["low"]), finite(gain["high"])
    if low is not None and low > 0:
        return "pays"
    if low == high == 0:
        return "equal"
    return "loses" if high is not None and high < 0 else "open"


def write_bound(units: Units, safety: Part) -> str:
    """Say what the recommended option brings at least over everyone the same, after choosing among the options."""
    best = find_advised(safety)
    if best is not None:
        gain = write_least(units, best)
        return (
            f"With {best['name']}: at least {gain} over treating everyone alike at the same cost, with 95 % confidence."
        )
    if all(finite(row["at_least"]) is None for row in safety["options"]):
        return "There is no bound on the gain: too few responses."
    names = " nor ".join(row["name"] for row in safety["options"])
    shown = f"neither {names} is" if len(safety["options"]) > 1 else f"{names} is not"
    return f"It could be no gain: with 95 % confidence, {shown} shown to beat treating everyone alike at the same cost."


def write_least(units: Units, option: Part) -> str:
    """Write the least gain of an option as its interval is written, or with as many digits as tell it from zero."""
    least = finite(option["at_least"])
    text = units.gain_style(option["gain"]).text(least, signed=True)
    hidden = least and not any(digit in text for digit in "123456789")
    return units.difference([least], abs(least), digits=1).text(least, signed=True) if least and hidden else text


def find_advised(safety: Part) -> Part | None:
    """Return the recommended option, which surely gains; None where treating everyone alike is recommended."""
    named = [row for row in safety["options"] if row["name"] == safety["recommended"]]
    return next((row for row in named if (finite(row["at_least"]) or 0.0) > 0), None)


def find_advised_rule(safety: Part) -> Part | None:
    """Return the recommended option where it is not the plan itself; else None."""
    advised = find_advised(safety)
    return None if advised is None or advised["name"] == safety["options"][0]["name"] else advised


def warn_of_spending(units: Units, numbers: Part) -> list[dict[str, str]]:
    """Warn when the estimated spend lies above the budget, or when the plan leaves much of the budget unspent."""
    budget, planned, spend = finite(numbers["budget"]["average"]), numbers["planned"]["spend"], numbers["spend"]
    low = finite(spend["low"])
    if "confidence" in numbers["planned"] and numbers["planned"]["price"] and budget is not None:
        return [*_warn_above(units, spend, budget), _note_confidence(units, numbers["planned"], budget)]
    if budget is not None and planned < MUCH * budget:
        text = (
            f"The plan uses {units.cost(planned)} of the budget of {units.cost(budget)} per customer: "
            "the model expects nothing from spending more."
        )
        return [{"answer": "note", "text": text}]
    return [] if budget is None or low is None else _warn_above(units, spend, budget)


def _warn_above(units: Units, spend: Part, budget: float) -> list[dict[str, str]]:
    """Warn when even the lower end of the spend's interval lies above the budget."""
    low = finite(spend["low"])
    if low is None or low <= budget * (1 + 1e-9):
        return []
    style = units.spend_style(spend)
    text = (
        f"The plan is expected to cost {style.text(spend['estimate'])} per customer (at least {style.text(low)}), more than "
        f"the budget of {units.cost(budget)}: customers cost more than the model predicts. Plan with a smaller budget."
    )
    return [{"answer": "careful", "text": text}]


def _note_confidence(units: Units, planned: Part, budget: float) -> dict[str, str]:
    """Say with what probability the plan keeps its budget, where its cost depends on what customers do."""
    text = (
        "What the plan costs depends on what customers do. Its price is set by what such plans cost held-out rows of the log, "
        f"not by what the model expects: {units.cost(planned['spend'])} of the budget of {units.cost(budget)} per customer. "
        f"The true cost is within the budget with a probability of {write_percent(planned['confidence'])}."
    )
    return {"answer": "note", "text": text}


def select_urgent(warnings: Sequence[Part]) -> list[Part]:
    """Return the warnings that belong at the top, the most serious first."""
    return sorted((w for w in warnings if w["answer"] in URGENT), key=lambda w: URGENT.index(w["answer"]))


def write_briefly(text: str) -> str:
    """Return the first sentence of a text; a point within a quoted name does not end it.

    >>> write_briefly("Too few rows: 'No. A' (3 rows). Try them first.")
    "Too few rows: 'No. A' (3 rows)."
    """
    plain = re.sub(r"(?<!\w)(['\"]).*?\1(?!\w)", lambda quoted: "x" * len(quoted[0]), text)
    end = re.search(r"[.?!](?=\s+[A-Z])", plain)
    return text if end is None else text[: end.end()]


def brief_urgent(warnings: Sequence[Part]) -> list[dict[str, str]]:
    """Return the warnings that belong at the top, one sentence each, the most serious first; the rest of each apart."""
    found = []
    for warning in select_urgent(warnings):
        first = write_briefly(warning["text"])
        found.append({"answer": warning["answer"], "text": first, "rest": warning["text"][len(first) :].strip()})
    return found


def select_notes(warnings: Sequence[Part]) -> list[Part]:
    """Return the warnings that may stand at the end."""
    return [w for w in warnings if w["answer"] not in URGENT]
