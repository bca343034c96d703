"""Sentences about profit: whether the campaign earns back what it costs, and which budget leaves most."""

from __future__ import annotations

from typing import Any

from largesse.report.formats import Style, Units, finite
from largesse.report.words import (
    Part,
    find_advised_rule,
    judge,
    write_gain,
    write_headline,
    write_least,
    write_verdict,
)

CENT = 0.01
WIDE = 0.9  # of the range of budgets: as good as all of them
CLOSE = 1e-9


def write_sentences(units: Units, numbers: Part) -> dict[str, str]:
    """Return the headline and the verdict: money first where the campaign loses it, else who gets what."""
    loss, verdict = write_loss(units, numbers), [write_verdict(units, numbers)]
    if loss:  # who gets what at this cost matters less
        verdict = [write(units, numbers) for write in (write_profit, write_best, write_choosing)]
    elif "profit" in numbers:
        verdict.append(write_profit(units, numbers))
    headline = loss or write_headline(units, numbers)
    return {"headline": headline, "verdict": " ".join(sentence for sentence in verdict if sentence)}


def judge_profit(numbers: Part) -> str:
    """Return whether the plan leaves more than giving everyone the cheapest level; nothing where no response has a value.

    It pays, loses, is the same ("equal"), or the log does not show it ("open").
    """
    return judge(numbers["profit"]["gain"]) if "profit" in numbers else ""


def write_loss(units: Units, numbers: Part) -> str:
    """Return the headline of a campaign that loses money; nothing for any other."""
    if judge_profit(numbers) != "loses":
        return ""
    back = finite(numbers["profit"]["returned"].get("estimate"))
    if back is None or not 0 <= back < 1:
        less = _style(units, numbers["profit"]["gain"]).text(-(finite(numbers["profit"]["gain"]["estimate"]) or 0.0))
        return f"This plan loses money: it leaves {less} less per customer than {write_nothing(numbers)}."
    one = units.one if units.currency else "unit"
    beyond = "" if _is_free(numbers) else f" beyond {_name_cheapest(numbers)}"
    return f"This plan loses money: every {one} spent{beyond} brings back {write_returned(units, back)}."


def write_returned(units: Units, back: Any) -> str:
    """Write what a unit of money brings back; never rounded up to the whole of it.

    >>> write_returned(Units("amount", "€", "€"), 0.1904), write_returned(Units("binary", ""), 0.9996)
    ('€0.19', '0.9996')
    """
    number = finite(back)
    style = units.profit.response([number], CENT)
    while number is not None and number < 1 and style.bare(number).startswith("1") and style.decimals < 9:
        style = Style(style.unit, style.decimals + 1, style.prefix, style.suffix)
    return style.text(number)


def write_profit(units: Units, numbers: Part) -> str:
    """Say what is left after costs, and whether that is more than without the campaign."""
    profit, judged = numbers["profit"], judge_profit(numbers)
    own = _style(units, profit["own"]).both(profit["own"])
    more, nothing = write_gain(units.profit, profit["gain"]), write_nothing(numbers)
    left = f"After costs, this plan leaves {own} per customer"
    if judged == "equal":
        return f"{left}, as {nothing} does."
    if judged == "open":
        return f"{left}. The log does not show that this is more than {nothing} leaves: {more}."
    return f"{left}: {more} against {nothing}."


def write_choosing(units: Units, numbers: Part) -> str:
    """Say in one sentence what choosing who gets what does at the same cost, where money is the larger matter."""
    same, rule = numbers["versus"][0], find_advised_rule(numbers["safety"])
    judged, between = judge(same["difference"]), f"{write_gain(units, same['difference'])} against {same['name']}"
    if rule:
        return f"At the same cost, a simple rule gains at least {write_least(units, rule)}."
    if judged == "equal":
        return ""
    found = {"pays": "gains", "loses": "loses"}.get(judged, "is not shown to gain")
    return f"At the same cost, choosing who gets what {found}: {between}."


def write_best(units: Units, numbers: Part) -> str:
    """Say which budget leaves most, and how sure that is."""
    best = numbers["profit"].get("best") or {}
    budget, low, high = (finite(best.get(key)) for key in ("budget", "low", "high"))
    if budget is None or low is None or high is None:
        return ""
    cost = units.money([low, budget, high]).text
    budgets = [finite(row["budget"]) for row in numbers["frontier"]["points"]]
    known = [each for each in budgets if each is not None]
    found = f"A budget of {cost(budget)} per customer leaves most after costs"
    if budget <= min(known, default=0.0):
        nothing = write_nothing(numbers)
        found = f"{nothing[:1].upper()}{nothing[1:]} leaves most after costs"
    if high - low >= WIDE * (max(known, default=high) - min(known, default=low)) and high > low:
        return f"{found}, but the log cannot tell which budget is best: any from {cost(low)} to {cost(high)} may be."
    if high > low:
        found += f"; with 95 % confidence the best budget lies between {cost(low)} and {cost(high)}"
    if best.get("may_be_this"):
        return f"{found}."
    # Budgets that may be best need not lie side by side: where few rows judge large budgets, those cannot be excluded.
    inside = low < (finite(numbers["spend"]["estimate"]) or 0.0) < high
    return f"{found}. This budget{', though between them,' if inside else ''} leaves clearly less."


def write_nothing(numbers: Part) -> str:
    """Say what a campaign is compared with: everyone gets the cheapest level."""
    return f"giving everyone {_name_cheapest(numbers)}"


def _name_cheapest(numbers: Part) -> str:
    return f"{(numbers['uniform'] or numbers['levels'])[0]['name']!r}"


def _is_free(numbers: Part) -> bool:
    """Whether the cheapest level costs nothing."""
    spend = numbers["uniform"][0]["spend"] if numbers["uniform"] else {}
    return abs(finite(spend.get("estimate")) or 0.0) <= CLOSE


def _style(units: Units, estimate: Part) -> Style:
    return units.profit.value_style(estimate)
