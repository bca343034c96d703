"""Sentences of the report: the verdict, the profit, exploration, and warnings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from largesse.report.number_format import Style, Units, finite, write_count, write_percent

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
    if numbers["planned"]["confidence"] is not None and numbers["planned"]["price"] and budget is not None:
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


CENT = 0.01
WIDE = 0.9  # of the range of budgets: as good as all of them
CLOSE = 1e-9


def write_sentences(units: Units, numbers: Part) -> dict[str, str]:
    """Return the headline and the verdict: money first where the campaign loses it, else who gets what."""
    loss, verdict = write_loss(units, numbers), [write_verdict(units, numbers)]
    if loss:  # who gets what at this cost matters less
        verdict = [write(units, numbers) for write in (write_profit, write_best, write_choosing)]
    elif numbers["profit"]:
        verdict.append(write_profit(units, numbers))
    headline = loss or write_headline(units, numbers)
    return {"headline": headline, "verdict": " ".join(sentence for sentence in verdict if sentence)}


def judge_profit(numbers: Part) -> str:
    """Return whether the plan leaves more than giving everyone the cheapest level; nothing where no response has a value.

    It pays, loses, is the same ("equal"), or the log does not show it ("open").
    """
    return judge(numbers["profit"]["gain"]) if numbers["profit"] else ""


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
    best = numbers["best_budget"] or {}
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


REACH = 1.96  # standard errors of half a 95 % interval


def write_explored(found: Mapping[str, Any] | None, customers: int, units: Units) -> str:
    """Say what a plan that explores for a purpose gives up, and how precise it makes the next log; nothing if it does not."""
    if found is None:
        return ""
    this, random = found["ways"][:2]
    lost = f"It gives up {units.gain_style({'estimate': found['given_up']}).text(found['given_up'])} per customer"
    money = finite(found["money"])
    lost += f", worth {units.cost(money)} of budget each" if money is not None else ""
    own, other = finite(this["gain_se"]), finite(random["gain_se"])
    if not own or not other:
        return f"{lost}."
    style = units.gain_style({"estimate": REACH * other})
    return (
        f"{lost}. From {write_count(customers)} customers the next log is expected to tell the plan's gain to within ± "
        f"{style.text(REACH * own)}; with levels at random that give up as much it would be ± {style.text(REACH * other)}."
    )
