"""The answer in sentences: what the plan brings, whether targeting pays, and what to look out for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from largesse.errors import count
from largesse.report.formats import Units, finite, half_width

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
    """Return the answer in one sentence."""
    value, before, response = numbers["value"], numbers["versus"][1], numbers["response"]["name"]
    spent = f"{units.cost(numbers['spend']['estimate'])}{units.spelled} per customer"
    earlier = units.response([before["value"]["estimate"]], half_width(value)).text(before["value"]["estimate"])
    paid = units.cost(before["spend"]["estimate"])
    customers = count(numbers["customers"], "customer")
    if units.binary:
        bring = f"{write_value(units, value)} of {customers} are expected to respond ({response})"
        return f"For {spent}, {bring}; before, {earlier} did for {paid}."
    bring = f"{write_value(units, value)} {response} from each of {customers} are expected"
    return f"For {spent}, {bring}; before, it was {earlier} for {paid}."


def write_verdict(units: Units, numbers: Part) -> str:
    """Say whether choosing who gets what gains anything over giving everyone the same at the same cost."""
    same = numbers["versus"][0]
    gain, between = same["difference"], write_gain(units, same["difference"])
    low, high = finite(gain["low"]), finite(gain["high"])
    alike = f"giving everyone the same at the same cost ({same['detail']})"
    if low == high == 0:
        return f"At this budget there is nothing to choose: the plan is the same for everyone ({same['detail']})."
    if low is not None and low > 0:
        return f"Choosing who gets what pays: {between} over {alike}."
    if high is not None and high < 0:
        return f"Choosing who gets what loses: {between} against {alike}. Give everyone the same."
    return (
        f"The log does not show that choosing who gets what beats {alike}: "
        f"the difference is {between}, which may be nothing. The simpler plan is as good a choice."
    )


def warn_of_spending(units: Units, numbers: Part) -> list[dict[str, str]]:
    """Warn when the estimated spend lies above the budget, or when the plan leaves much of the budget unspent."""
    budget, planned, spend = finite(numbers["budget"]["average"]), numbers["planned"]["spend"], numbers["spend"]
    low = finite(spend["low"])
    if budget is not None and planned < MUCH * budget:
        text = (
            f"The plan uses {units.cost(planned)} of the budget of {units.cost(budget)} per customer: "
            "the model expects nothing from spending more."
        )
        return [{"answer": "note", "text": text}]
    if budget is None or low is None or low <= budget * (1 + 1e-9):
        return []
    style = units.spend_style(spend)
    text = (
        f"The plan is expected to cost {style.text(spend['estimate'])} per customer (at least {style.text(low)}), more than "
        f"the budget of {units.cost(budget)}: customers redeem more often than the model predicts. Plan with a smaller budget."
    )
    return [{"answer": "careful", "text": text}]


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
