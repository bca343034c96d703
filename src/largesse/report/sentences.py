"""Sentences of the report: the verdict, the profit, the lower bounds, exploration, and warnings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from largesse.report.number_format import Numbers, Units, finite, is_zero_text, write_count, write_percent

MIN_BUDGET_USE = 0.95  # share of the budget; a plan that uses less gets a note
URGENT = ("no", "careful")  # answers of warnings, the most serious first
RETURN_SPREAD = 0.01  # difference of returns that must be visible
UNKNOWN_BEST_RANGE = 0.9  # of the range of budgets: the best one may be any of them
FREE_COST = 1e-9
REACH = 1.96  # standard errors of half a 95 % interval


# -- the verdict -------------------------------------------------------------------------------------------------------


def judge_gain(gain: Numbers) -> str:
    """Classify a gain by its interval: "pays", "loses", "equal" (exactly zero) or "open" (may be zero)."""
    low, high = finite(gain["low"]), finite(gain["high"])
    if low is not None and low > 0:
        return "pays"
    if low == high == 0:
        return "equal"
    return "loses" if high is not None and high < 0 else "open"


def judge_profit(numbers: Numbers) -> str:
    """Classify the plan's profit over giving everyone the cheapest level; empty if responses have no value."""
    return judge_gain(numbers["profit"]["gain"]) if numbers["profit"] else ""


def is_random_mix(reference: Numbers) -> bool:
    """Return True for a reference that draws levels at random, instead of giving everyone the same one."""
    return bool(reference["name"] != "everyone the same")


def write_sentences(units: Units, numbers: Numbers) -> dict[str, str]:
    """Return the headline and the verdict; a campaign that loses money says so first."""
    loss, verdict = write_loss(units, numbers), [write_verdict(units, numbers)]
    if loss:
        verdict = [write(units, numbers) for write in (write_profit, write_best_budget, _write_choosing)]
    elif numbers["profit"]:
        verdict.append(write_profit(units, numbers))
    headline = loss or write_headline(units, numbers)
    return {"headline": headline, "verdict": " ".join(filter(None, verdict))}


def write_headline(units: Units, numbers: Numbers) -> str:
    """Write the verdict in one sentence: the gain of targeting over treating everyone the same at the same cost."""
    same, rule = numbers["versus"][0], find_advised_rule(numbers["safety"])
    judged, gain = judge_gain(same["difference"]), units.write_gain(same["difference"])
    if judged == "pays":
        return f"Choosing who gets what pays: {gain} over {same['name']} at the same cost."
    if judged == "equal":
        return "There is nothing to choose at this budget: the plan treats everyone the same."
    if rule:
        return f"A simple rule pays: at least {write_bound(units, rule)} at the same cost, with 95 % confidence."
    if judged == "loses":
        advice = "Draw levels at random" if is_random_mix(same) else "Give everyone the same"
        return f"{advice}: at the same cost, choosing who gets what loses {gain}."
    return "The log does not show that choosing who gets what pays."


def write_verdict(units: Units, numbers: Numbers) -> str:
    """Explain the headline: the comparison, the plan's lower bound, and the advice."""
    same, rule = numbers["versus"][0], find_advised_rule(numbers["safety"])
    judged = judge_gain(same["difference"])
    reference = "a random mix of levels" if is_random_mix(same) else "giving everyone the same"
    reference = f"{reference} at the same cost ({same['detail']})"
    advice = f"The rule: {rule['detail']}." if rule else ""
    compared = (
        f"Compared with {reference}, {'this plan' if rule else 'choosing who gets what'} brings "
        f"{units.write_gain(same['difference'])}"
    )
    if judged == "pays":
        least = write_bound(units, numbers["safety"]["options"][0])
        compared = f"It gains at least {least} over {reference}, with 95 % confidence."
        if rule:
            advice = f"A simple rule gains at least {write_bound(units, rule)}. {advice}"
    elif judged == "equal":
        compared = f"The plan is the same for everyone ({same['detail']})."
        if rule:
            advice = f"A simple rule gains at least {write_bound(units, rule)}, with 95 % confidence. {advice}"
    elif judged == "loses":
        compared += "."
    else:
        compared += ": the difference may be zero."
        advice = advice or "The simpler plan is as good a choice."
    return f"{compared} {advice}".strip()


def _write_choosing(units: Units, numbers: Numbers) -> str:
    """Say in one sentence whether choosing pays at the same cost, for a campaign that loses money."""
    same, rule = numbers["versus"][0], find_advised_rule(numbers["safety"])
    judged = judge_gain(same["difference"])
    if rule:
        return f"At the same cost, a simple rule gains at least {write_bound(units, rule)}."
    if judged == "equal":
        return ""
    verb = {"pays": "gains", "loses": "loses"}.get(judged, "is not shown to gain")
    return f"At the same cost, choosing who gets what {verb}: {units.write_gain(same['difference'])} against {same['name']}."


# -- lower bounds ------------------------------------------------------------------------------------------------------


def find_advised(safety: Numbers) -> Numbers | None:
    """Return the recommended option if its gain is certain; None if treating everyone the same is recommended."""
    options = (row for row in safety["options"] if row["name"] == safety["recommended"])
    return next((row for row in options if (finite(row["at_least"]) or 0.0) > 0), None)


def find_advised_rule(safety: Numbers) -> Numbers | None:
    """Return the recommended option if it is not the plan itself."""
    advised = find_advised(safety)
    return None if advised is None or advised["name"] == safety["options"][0]["name"] else advised


def write_bound(units: Units, option: Numbers) -> str:
    """Write the lower bound of an option's gain as its interval is written, or with enough digits to differ from zero."""
    bound = finite(option["at_least"])
    text = units.gain_style(option["gain"]).text(bound, signed=True)
    if bound and is_zero_text(text):
        return units.difference([bound], abs(bound), digits=1).text(bound, signed=True)
    return text


def describe_bound(units: Units, safety: Numbers) -> str:
    """Write the lower bound of the recommended option's gain, which holds after choosing among the options."""
    advised, options = find_advised(safety), safety["options"]
    if advised is not None:
        name = advised["name"][:1].upper() + advised["name"][1:]
        bound = write_bound(units, advised)
        return f"{name} gains at least {bound} over treating everyone the same at the same cost, with 95 % confidence."
    if all(finite(row["at_least"]) is None for row in options):
        return "There is no bound on the gain: too few responses."
    names = " nor ".join(row["name"] for row in options)
    verb = f"neither {names} is" if len(options) > 1 else f"{names} is not"
    return (
        f"There may be no gain: with 95 % confidence, {verb} shown to beat treating everyone the same at the same cost."
    )


# -- profit ------------------------------------------------------------------------------------------------------------


def write_loss(units: Units, numbers: Numbers) -> str:
    """Return the headline of a campaign that loses money; empty for any other."""
    if judge_profit(numbers) != "loses":
        return ""
    returned = finite(numbers["profit"]["returned"].get("estimate"))
    if returned is None or not 0 <= returned < 1:
        gain = numbers["profit"]["gain"]
        loss = units.profit.value_style(gain).text(-(finite(gain["estimate"]) or 0.0))
        return f"This plan loses money: it leaves {loss} less per customer than {name_cheapest(numbers)}."
    spend = numbers["uniform"][0]["spend"] if numbers["uniform"] else {}
    free = abs(finite(spend.get("estimate")) or 0.0) <= FREE_COST
    beyond = "" if free else f" beyond {_name_level(numbers)}"
    return (
        f"This plan loses money: every {units.one_spent} spent{beyond} brings back {write_returned(units, returned)}."
    )


def write_returned(units: Units, returned: object) -> str:
    """Write the return of one unit of money; a loss is never rounded up to the whole unit.

    >>> write_returned(Units("amount", "€", "€"), 0.1904), write_returned(Units("binary", ""), 0.9996)
    ('€0.19', '0.9996')
    """
    number = finite(returned)
    style = units.profit.response([number], RETURN_SPREAD)
    while number is not None and number < 1 and style.bare(number).startswith("1") and style.decimals < 9:
        style = replace(style, decimals=style.decimals + 1)
    return style.text(number)


def write_profit(units: Units, numbers: Numbers) -> str:
    """Write the profit after costs, and whether it is more than without the campaign."""
    profit, judged = numbers["profit"], judge_profit(numbers)
    profit_text = units.profit.value_style(profit["own"]).with_interval(profit["own"])
    gain, cheapest = units.profit.write_gain(profit["gain"]), name_cheapest(numbers)
    left = f"After costs, this plan leaves {profit_text} per customer"
    if judged == "equal":
        return f"{left}, as {cheapest} does."
    if judged == "open":
        return f"{left}. The log does not show that this is more than {cheapest} leaves: {gain}."
    return f"{left}: {gain} against {cheapest}."


def write_best_budget(units: Units, numbers: Numbers) -> str:
    """Write the budget with the largest profit, and its confidence set."""
    best = numbers["best_budget"] or {}
    budget, low, high = (finite(best.get(key)) for key in ("budget", "low", "high"))
    if budget is None or low is None or high is None:
        return ""
    cost = units.money([low, budget, high]).text
    budgets = [known for row in numbers["frontier"]["points"] if (known := finite(row["budget"])) is not None]
    text = f"A budget of {cost(budget)} per customer leaves most after costs"
    if budget <= min(budgets, default=0.0):
        cheapest = name_cheapest(numbers)
        text = f"{cheapest[:1].upper()}{cheapest[1:]} leaves most after costs"
    if high > low and high - low >= UNKNOWN_BEST_RANGE * (max(budgets, default=high) - min(budgets, default=low)):
        return f"{text}, but the log cannot tell which budget is best: any from {cost(low)} to {cost(high)} may be."
    if high > low:
        text += f"; with 95 % confidence the best budget lies between {cost(low)} and {cost(high)}"
    if best.get("may_be_this"):
        return f"{text}."
    # The confidence set may have gaps: where few rows judge large budgets, those cannot be excluded.
    inside = low < (finite(numbers["spend"]["estimate"]) or 0.0) < high
    return f"{text}. This budget{' lies between them but' if inside else ''} leaves clearly less."


def name_cheapest(numbers: Numbers) -> str:
    """Name the campaign's alternative: everyone gets the cheapest level."""
    return f"giving everyone {_name_level(numbers)}"


def _name_level(numbers: Numbers) -> str:
    return f"{(numbers['uniform'] or numbers['levels'])[0]['name']!r}"


# -- warnings and exploration ------------------------------------------------------------------------------------------


def warn_of_spending(units: Units, numbers: Numbers) -> list[dict[str, str]]:
    """Warn if the estimated spend lies above the budget, or if the plan leaves much of the budget unspent."""
    budget, planned, spend = finite(numbers["budget"]["average"]), numbers["planned"], numbers["spend"]
    if budget is None:
        return []
    warnings, low = [], finite(spend["low"])
    if low is not None and low > budget * (1 + 1e-9):
        style = units.spend_style(spend)
        text = (
            f"The plan is expected to cost {style.text(spend['estimate'])} per customer (at least {style.text(low)}), more than "
            f"the budget of {units.cost(budget)}: customers cost more than the model predicts. Plan with a smaller budget."
        )
        warnings.append({"answer": "careful", "text": text})
    if planned["confidence"] is not None and planned["price"]:
        text = (
            "The cost of the plan depends on what customers do. It was calibrated on held-out rows of the log: the plan is "
            f"expected to cost {units.cost(planned['spend'])} of the budget of {units.cost(budget)} per customer. "
            f"The true cost is within the budget with a probability of {write_percent(planned['confidence'])}."
        )
        return [*warnings, {"answer": "note", "text": text}]
    if planned["spend"] < MIN_BUDGET_USE * budget:
        text = (
            f"The plan uses {units.cost(planned['spend'])} of the budget of {units.cost(budget)} per customer: "
            "the model expects nothing from spending more."
        )
        return [{"answer": "note", "text": text}]
    return warnings


def select_urgent(warnings: Sequence[Numbers]) -> list[dict[str, str]]:
    """Return the urgent warnings, the most serious first: the first sentence of each, and the rest."""
    shortened = []
    for warning in sorted((w for w in warnings if w["answer"] in URGENT), key=lambda w: URGENT.index(w["answer"])):
        first = take_first_sentence(warning["text"])
        shortened.append({"answer": warning["answer"], "text": first, "rest": warning["text"][len(first) :].strip()})
    return shortened


def select_notes(warnings: Sequence[Numbers]) -> list[Numbers]:
    """Return the warnings that are not urgent."""
    return [warning for warning in warnings if warning["answer"] not in URGENT]


def take_first_sentence(text: str) -> str:
    """Return the first sentence of a text; a point within a quoted name does not end it.

    >>> take_first_sentence("Too few rows: 'No. A' (3 rows). Try them first.")
    "Too few rows: 'No. A' (3 rows)."
    """
    plain = re.sub(r"(?<!\w)(['\"]).*?\1(?!\w)", lambda quoted: "x" * len(quoted[0]), text)
    end = re.search(r"[.?!](?=\s+[A-Z])", plain)
    return text if end is None else text[: end.end()]


def write_exploration(exploration: Numbers | None, customers: int, units: Units) -> str:
    """Write the cost of exploration and the precision of the next log; empty without an exploration goal."""
    if exploration is None:
        return ""
    this, random = exploration["ways"][:2]
    cost = {"estimate": exploration["given_up"]}
    text = f"It gives up {units.gain_style(cost).text(cost['estimate'])} per customer"
    money = finite(exploration["money"])
    text += f", worth {units.cost(money)} of budget each" if money is not None else ""
    this_se, random_se = finite(this["gain_se"]), finite(random["gain_se"])
    if not this_se or not random_se:
        return f"{text}."
    style = units.gain_style({"estimate": REACH * random_se})
    return (
        f"{text}. With {write_count(customers)} customers, the next log is expected to measure the plan's gain to within ± "
        f"{style.text(REACH * this_se)}; levels drawn at random that give up as much would measure it to within "
        f"± {style.text(REACH * random_se)}."
    )
