"""The answer in sentences: what the plan brings, whether targeting pays, and what to look out for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from largesse.errors import count
from largesse.report.formats import Units, finite, half_width, parts

Part = Mapping[str, Any]
MUCH = 0.95  # a plan that uses less of its budget than this gets a note


def value_text(units: Units, value: Part) -> str:
    """Write an estimated response with as many digits as its interval deserves."""
    return units.response(parts(value), half_width(value)).text(value["estimate"])


def value_interval(units: Units, value: Part) -> str:
    """Write the interval of an estimated response."""
    return units.response(parts(value), half_width(value)).interval(value)


def gain_text(units: Units, gain: Part) -> str:
    """Write a difference with its interval, signed: +1.1 pp (−1.3 to +3.5 pp)."""
    style = units.difference(parts(gain), half_width(gain))
    return f"{style.text(gain['estimate'], signed=True)} ({style.interval(gain, signed=True)})"


def headline(units: Units, response: str, plan: Part, judged: Part) -> str:
    """Return the answer in one sentence."""
    value, before = judged["value"], judged["versus"][1]
    spent = f"{units.cost(judged['spend']['estimate'])}{units.spelled} per customer"
    got = value_text(units, value)
    brought = units.response([before["value"]["estimate"]], half_width(value)).text(before["value"]["estimate"])
    if units.binary:
        bring = f"{got} of {count(plan['customers'], 'customer')} are expected to respond ({response})"
        return f"For {spent}, {bring}; before, {brought} did for {units.cost(before['spend']['estimate'])}."
    bring = f"{got} {response} from each of {count(plan['customers'], 'customer')} are expected"
    return f"For {spent}, {bring}; before, it was {brought} for {units.cost(before['spend']['estimate'])}."


def verdict(units: Units, judged: Part) -> str:
    """Say whether choosing who gets what gains anything over giving everyone the same at the same cost."""
    same = judged["versus"][0]
    gain, between = same["difference"], gain_text(units, same["difference"])
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


def spending(units: Units, plan: Part, judged: Part) -> list[dict[str, str]]:
    """Warn when the honest spend lies above the budget, or when the plan leaves much of the budget unspent."""
    budget, spend = finite(plan["budget"]["average"]), judged["spend"]
    low = finite(spend["low"])
    if budget is not None and plan["planned"]["spend"] < MUCH * budget:
        text = (
            f"The plan uses {units.cost(plan['planned']['spend'])} of the budget of {units.cost(budget)} per customer: "
            "the model sees nothing more that is worth buying."
        )
        return [{"severity": "note", "text": text}]
    if budget is None or low is None or low <= budget * (1 + 1e-9):
        return []
    style = units.money(parts(spend), half_width(spend))
    text = (
        f"The plan is expected to cost {style.text(spend['estimate'])} per customer (at least {style.text(low)}), more than "
        f"the budget of {units.cost(budget)}: customers redeem more often than the model thinks. Plan with a smaller budget."
    )
    return [{"severity": "careful", "text": text}]
