"""Sentences of the report: verdict, lower bounds, profit, groups, warnings and exploration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from largesse.report.number_format import (
    MISSING_DASH,
    THIN_SPACE,
    Numbers,
    NumberStyle,
    Units,
    finite_or_none,
    is_zero_text,
    write_count,
    write_percent,
)

MIN_BUDGET_USE = 0.95  # share of the budget; a plan that uses less gets a note
URGENT = ("no", "careful")  # answers of warnings, the most serious first
RETURN_SPREAD = 0.01  # difference of returns that must be visible
UNKNOWN_BEST_RANGE = 0.9  # of the range of budgets: the best one may be any of them
FREE_COST = 1e-9
MIN_SHOWN_PROBABILITY = 0.01
MAX_SHOWN_WARNINGS = 4
MIN_SHOWN_RISKS = 3
NEARLY_ALL = 0.995  # share of a group's customers that is called all of them
REACH = 1.96  # standard errors of half a 95 % interval


SHORT_WARNINGS = {  # of urgent warnings, by topic: for readers who do not know the words of the checks
    "rows of each level": "Few customers of the log got some of the levels. What these levels bring is uncertain.",
    "support": "Some kinds of customers never got some of the levels. What these bring them is not known.",
    "randomisation": "Levels were not given at random. Those who got more may differ from the others.",
    "balance": "Customers who got different levels are not alike, also after weighting.",
    "weights": "Few customers of the log carry much of the estimates.",
    "order of levels": "More is not always better: check the order of the levels.",
    "suspicious features": "A column may have been recorded only afterwards. Then the numbers are too good.",
    "within customers": "Comparing customers with themselves gives another answer than comparing them with others.",
    "clusters": "Levels may have been given to groups of customers. Then the intervals are too short.",
    "your customers": "The customers to plan for are not like those of the log.",
    "interval": "Too few customers responded for an interval.",
}


# -- the verdict -------------------------------------------------------------------------------------------------------


def classify_gain(gain: Numbers) -> str:
    """Classify a gain by its interval as "pays", "loses", "equal" (exactly zero) or "open" (may be zero)."""
    low, high = finite_or_none(gain["low"]), finite_or_none(gain["high"])
    if low is not None and low > 0:
        return "pays"
    if low == high == 0:
        return "equal"
    return "loses" if high is not None and high < 0 else "open"


def classify_profit(numbers: Numbers) -> str:
    """Classify the plan's profit relative to the cheapest level for everyone; empty without money values."""
    return classify_gain(numbers["profit"]["gain"]) if numbers["profit"] else ""


def write_verdict_sentences(units: Units, numbers: Numbers) -> dict[str, str]:
    """Return the report's headline and the sentences below it."""
    loss, below = write_loss_headline(units, numbers), [write_evidence_sentences(units, numbers)]
    if loss:
        below = [write_profit(units, numbers), write_best_budget(units, numbers), _compare_at_same_cost(units, numbers)]
    elif numbers["profit"]:
        below.append(write_profit(units, numbers))
    return {"headline": loss or write_headline(units, numbers), "verdict": " ".join(filter(None, below))}


def find_recommended_evidence(verdict: Numbers) -> Numbers | None:
    """Return the evidence for the recommended option, or None if the log is insufficient.

    The plan's evidence, if the best uniform mix is recommended.
    """
    options = {option["name"]: option for option in verdict["options"]}
    return options.get(verdict["recommended"]) or options.get("plan")


def gives_everyone_same_level(verdict: Numbers) -> bool:
    """Return True if the plan gives every customer the same level."""
    evidence = find_recommended_evidence(verdict)
    return verdict["recommended"] == "mix" and evidence is not None and classify_gain(evidence["gain"]) == "equal"


def write_headline(units: Units, numbers: Numbers) -> str:
    """Write the verdict as one sentence: grade, recommended option, and probability or gain."""
    verdict, same = numbers["verdict"], write_mix_name(numbers)
    evidence, advised = find_recommended_evidence(verdict), verdict["recommended"]
    if advised is None or evidence is None:
        return f"The log cannot say whether this plan is better than {same} at the same cost."
    probability = write_probability(evidence["probability"])
    if advised == "before":
        return (
            f"Keep what was done before: it beats the best uniform mix at its cost with a probability of {probability}."
        )
    if advised == "mix":
        if gives_everyone_same_level(verdict):
            return "There is nothing to choose at this budget: the plan treats everyone the same."
        if verdict["grade"] == "rather not":
            text = f"Rather not: choosing who gets what probably brings less than {same} at the same cost"
            return f"{text} (a gain has a probability of {probability})."
        return f"No difference worth having: take the simpler plan, {same}."
    option = write_option_name(advised)
    if verdict["grade"] == "proved":
        return f"Proved: {option} brings {units.write_gain(evidence['gain'])} over {same} at the same cost."
    if verdict["grade"] == "best bet":
        return f"Best bet: {option} beats {same} at the same cost with a probability of {probability}."
    return f"Slightly better: {option} beats {same} at the same cost with a probability of {probability} only."


def write_evidence_sentences(units: Units, numbers: Numbers) -> str:
    """Write the numbers behind the headline, and the log size that would make the verdict certain."""
    verdict = numbers["verdict"]
    evidence, advised = find_recommended_evidence(verdict), verdict["recommended"]
    if advised is None or evidence is None:
        return str(verdict["reason"])
    parts = [_write_expected_gain(units, evidence)]
    if advised == "mix":
        parts = [f"It is the same for everyone ({numbers['versus'][0]['detail']})."]
        if not gives_everyone_same_level(verdict):
            parts = [_write_expected_gain(units, evidence), _write_simpler_plan(units, numbers, evidence)]
    elif verdict["grade"] == "proved":
        bound = write_gain_bound(units, find_bounded_option(numbers, advised))
        parts.append(f"This log alone shows it: the gain is at least {bound}, with 95 % confidence.")
    elif advised == "before":
        plan = verdict["options"][0]
        parts.append(f"For this plan, it is {units.write_gain(plan['gain'])} at its own cost.")
    else:
        parts += [
            f"This log alone cannot prove it: {units.write_gain(evidence['log'])}.",
            write_log_for_certain_verdict(numbers),
        ]
    if advised == "rule":
        parts.append(f"The rule: {numbers['safety']['options'][1]['detail']}.")
    return " ".join(filter(None, [*parts, verdict["reason"]]))


def _write_expected_gain(units: Units, evidence: Numbers) -> str:
    together = "the log alone" if evidence["contradiction"] or evidence["model"] is None else "model and log together"
    return f"The expected gain is {units.write_gain(evidence['gain'])}, by {together}."


def _write_simpler_plan(units: Units, numbers: Numbers, evidence: Numbers) -> str:
    """Write the simpler plan, its saving, and the gain that it may lose."""
    same, high = numbers["versus"][0], finite_or_none(evidence["gain"]["high"])
    spends = [finite_or_none(row["spend"]["estimate"]) or 0.0 for row in (same, numbers)]
    cost = "costs less" if spends[0] < MIN_BUDGET_USE * spends[1] else "costs the same"
    text = f"The simpler plan ({same['detail']}) {cost} and needs no model"
    if high is None or high <= 0:
        return f"{text}."
    return f"{text}; it gives up at most {units.gain_style(evidence['gain']).text(high)}."


def _compare_at_same_cost(units: Units, numbers: Numbers) -> str:
    """Write the probability that the plan beats the best mix of levels for all customers at the same cost."""
    verdict = numbers["verdict"]
    if not verdict["options"] or gives_everyone_same_level(verdict):
        return ""
    plan = verdict["options"][0]
    probability = write_probability(plan["probability"])
    gain = units.write_gain(plan["gain"])
    return f"At the same cost, it beats {write_mix_name(numbers)} with a probability of {probability}: {gain}."


def write_log_for_certain_verdict(numbers: Numbers) -> str:
    """Write the exploration or the log size that would make the verdict certain; empty if none would."""
    verdict, next_log = numbers["verdict"], numbers.get("next_log")
    if next_log is not None and verdict["recommended"] == "plan":
        rate, customers = f"{100 * next_log['rate']:g} %", write_rounded_count(next_log["customers"])
        return f"Keep {rate} of the customers at random, and after {customers} customers you will know."
    needed = finite_or_none(verdict["needed_rows"])
    return "" if needed is None else f"A log of {write_rounded_count(needed)} rows like these would."


def write_rounded_count(count: object) -> str:
    """Write a count rounded to two significant digits.

    >>> write_rounded_count(30784.8)
    'about 31,000'
    """
    number = finite_or_none(count)
    return f"about {write_count(None if number is None else float(f'{number:.1e}'))}"


def write_probability(probability: float) -> str:
    """Format an estimated probability, limited to the range from 1 % to 99 %.

    >>> write_probability(0.9645), write_probability(0.9999)
    ('96\u202f%', '99\u202f%')
    """
    number = min(max(float(probability), MIN_SHOWN_PROBABILITY), 1 - MIN_SHOWN_PROBABILITY)
    return NumberStyle(0.01, suffix=f"{THIN_SPACE}%").text(number)


def quote_name(name: str) -> str:
    """Return a name in quotation marks.

    >>> quote_name("5 %")
    "'5 %'"
    """
    return f"'{name}'"


def is_random_mix(reference: Numbers) -> bool:
    """Return True if an alternative draws levels at random instead of giving everyone the same level."""
    return bool(reference["name"] != "everyone the same")


def write_mix_name(numbers: Numbers) -> str:
    """Return the words for the best mix of levels for all customers at the cost of the plan."""
    return "a random mix of levels" if is_random_mix(numbers["versus"][0]) else "the same level for everyone"


def write_option_name(name: str) -> str:
    """Return the phrase that names a policy of the verdict within a sentence, such as "this plan"."""
    return {"plan": "this plan", "rule": "a simple rule", "before": "what was done before"}[name]


# -- lower bounds ------------------------------------------------------------------------------------------------------


def find_bounded_option(numbers: Numbers, name: str) -> Numbers:
    """Return the estimate and the lower bound of the gain of one policy: the plan or the simple rule."""
    option: Numbers = numbers["safety"]["options"][1 if name == "rule" else 0]
    return option


def write_gain_bound(units: Units, option: Numbers) -> str:
    """Format the lower bound of a policy's gain with enough digits to differ from zero."""
    bound = finite_or_none(option["at_least"])
    text = units.gain_style(option["gain"]).text(bound, signed=True)
    if bound and is_zero_text(text):
        return units.difference([bound], abs(bound), digits=1).text(bound, signed=True)
    return text


def write_gain_bounds(units: Units, safety: Numbers) -> str:
    """Write the simultaneous lower bounds of the gains of plan and simple rule, from the log alone."""
    known = [row for row in safety["options"] if finite_or_none(row["at_least"]) is not None]
    if not known:
        return "There is no bound on the gain: too few responses."
    bounds = ", ".join(f"{row['name']} gains at least {write_gain_bound(units, row)}" for row in known)
    return f"This log alone, with 95 % confidence: {bounds} over the best uniform mix."


# -- profit ------------------------------------------------------------------------------------------------------------


def write_loss_headline(units: Units, numbers: Numbers) -> str:
    """Write the headline of a campaign that loses money; empty for any other campaign."""
    if classify_profit(numbers) != "loses":
        return ""
    returned = finite_or_none(numbers["profit"]["returned"].get("estimate"))
    if returned is None or not 0 <= returned < 1:
        gain = numbers["profit"]["gain"]
        loss = units.profit.value_style(gain).text(-(finite_or_none(gain["estimate"]) or 0.0))
        return f"This plan loses money: it leaves {loss} less per customer than {write_cheapest_alternative(numbers)}."
    spend = numbers["uniform"][0]["spend"] if numbers["uniform"] else {}
    free = abs(finite_or_none(spend.get("estimate")) or 0.0) <= FREE_COST
    beyond = "" if free else f" beyond {_quote_cheapest_level(numbers)}"
    even = ", even if all of that were profit" if counts_revenue_as_profit(units, numbers["profit"]) else ""
    back = write_return_per_unit(units, returned)
    return f"This plan loses money: every {units.spent_unit_text} spent{beyond} brings back {back}{even}."


def write_return_per_unit(units: Units, returned: object) -> str:
    """Format the return on one unit of money; a return below 1 is never rounded up to 1.

    >>> write_return_per_unit(Units("amount", "€", "€"), 0.1904), write_return_per_unit(Units("binary", ""), 0.9996)
    ('€0.19', '0.9996')
    """
    number = finite_or_none(returned)
    style = units.profit.response([number], RETURN_SPREAD)
    while number is not None and number < 1 and style.bare(number).startswith("1") and style.decimals < 9:
        style = replace(style, decimals=style.decimals + 1)
    return style.text(number)


def write_profit(units: Units, numbers: Numbers) -> str:
    """Write the plan's profit after costs, and its difference from the cheapest level for everyone."""
    profit, judged = numbers["profit"], classify_profit(numbers)
    profit_text = units.profit.value_style(profit["own"]).with_interval(profit["own"])
    gain, cheapest = units.profit.write_gain(profit["gain"]), write_cheapest_alternative(numbers)
    left = f"After costs, this plan leaves {profit_text} per customer"
    if counts_revenue_as_profit(units, profit):
        left += ", as if all of the response were profit"
    if judged == "equal":
        return f"{left}, as {cheapest} does."
    if judged == "open":
        return f"{left}. The log does not show that this is more than {cheapest} leaves: {gain}."
    return f"{left}: {gain} against {cheapest}."


def counts_revenue_as_profit(units: Units, profit: Numbers) -> bool:
    """Return True if responses are money without a margin, so that all revenue counts as profit."""
    return bool(units.response_unit) and not units.has_binary_response and float(profit["response_value"]) == 1


def write_best_budget(units: Units, numbers: Numbers) -> str:
    """Write the budget with the largest profit and its confidence set."""
    best = numbers["best_budget"] or {}
    budget, low, high = (finite_or_none(best.get(key)) for key in ("budget", "low", "high"))
    if budget is None or low is None or high is None:
        return ""
    cost = units.money([low, budget, high]).text
    budgets = [known for row in numbers["frontier"]["points"] if (known := finite_or_none(row["budget"])) is not None]
    text = f"A budget of {cost(budget)} per customer leaves most after costs"
    if budget <= min(budgets, default=0.0):
        cheapest = write_cheapest_alternative(numbers)
        text = f"{cheapest[:1].upper()}{cheapest[1:]} leaves most after costs"
    if high > low and high - low >= UNKNOWN_BEST_RANGE * (max(budgets, default=high) - min(budgets, default=low)):
        return f"{text}, but the log cannot tell which budget is best: any from {cost(low)} to {cost(high)} may be."
    if high > low:
        text += f"; with 95 % confidence the best budget lies between {cost(low)} and {cost(high)}"
    if best.get("may_be_this"):
        return f"{text}."
    # The confidence set may have gaps: where few rows judge large budgets, those cannot be excluded.
    inside = low < (finite_or_none(numbers["spend"]["estimate"]) or 0.0) < high
    return f"{text}. This budget{' lies between them but' if inside else ''} leaves clearly less."


def write_cheapest_alternative(numbers: Numbers) -> str:
    """Return the words for the alternative that gives everyone the cheapest level."""
    return f"giving everyone {_quote_cheapest_level(numbers)}"


def _quote_cheapest_level(numbers: Numbers) -> str:
    return quote_name((numbers["uniform"] or numbers["levels"])[0]["name"])


# -- groups of customers ------------------------------------------------------------------------------------------------


def write_group_sentences(numbers: Numbers) -> list[str]:
    """Write one sentence per group of customers with the planned level of the group.

    The groups are the leaves of a small policy tree.

    Groups that are the same for all customers need no sentence of conditions.
    """
    names, groups = [level["name"] for level in numbers["levels"]], numbers["groups"]
    sentences = []
    for group in groups:
        level = names[group["level"]] if group["level"] < len(names) else MISSING_DASH
        most = "all" if group["agreement"] >= NEARLY_ALL else write_percent(group["agreement"])
        if not group["conditions"]:
            sentences.append(f"{level} for {most}{'' if most == 'all' else ' of the customers'}.")
            continue
        who = " and ".join(write_group_conditions(group["conditions"]))
        share = f"{write_percent(group['share'])} of customers"
        sentences.append(f"{who[:1].upper()}{who[1:]} ({share}): {level} for {most}.")
    return sentences


def write_group_conditions(conditions: Sequence[Numbers]) -> list[str]:
    """Write the feature conditions of a customer group, with limits on one number or date as a range.

    >>> write_group_conditions([{"feature": "age", "kind": "number", "holds": False, "limit": 30.0, "word": None, "or_missing": False}])
    ['age 30 or more']
    """
    parts: dict[str, list[Numbers]] = {}
    for condition in conditions:
        parts.setdefault(condition["feature"], []).append(condition)
    return [_write_condition_range(feature, rows) for feature, rows in parts.items()]


def _write_condition_range(feature: str, rows: Sequence[Numbers]) -> str:
    words = []
    limits = [row for row in rows if finite_or_none(row["limit"]) is not None and row["kind"] in ("number", "date")]
    above = [row for row in limits if not row["holds"]]
    below = [row for row in limits if row["holds"]]
    if above and below:
        low, high = max(above, key=lambda row: row["limit"]), min(below, key=lambda row: row["limit"])
        words.append(f"{_write_condition_limit(low)} to {_write_condition_limit(high)}")
    elif above:
        row = max(above, key=lambda row: row["limit"])
        after = (
            f"from {_write_condition_limit(row)} on"
            if row["kind"] == "date"
            else f"{_write_condition_limit(row)} or more"
        )
        words.append(f"{after}{' or missing' if all(row['or_missing'] for row in above) else ''}")
    elif below:
        row = min(below, key=lambda row: row["limit"])
        words.append(f"{'before' if row['kind'] == 'date' else 'below'} {_write_condition_limit(row)}")
    for row in rows:
        if row in limits:
            continue
        if row["kind"] == "flag" and finite_or_none(row["limit"]) is not None:
            words.append("no" if row["holds"] else "yes or missing" if row["or_missing"] else "yes")
        else:
            words.append(f"{'' if row['holds'] else 'not '}{'missing' if row['word'] is None else row['word']}")
    mark = ":" if any(row not in limits for row in rows) else ""
    return f"{feature}{mark} {', '.join(words)}"


def _write_condition_limit(row: Numbers) -> str:
    if row["kind"] == "date":
        return datetime.fromtimestamp(float(row["limit"]), UTC).date().isoformat()
    return f"{row['limit']:,.6g}".replace("-", "−")


# -- warnings and exploration ------------------------------------------------------------------------------------------


def list_spending_warnings(units: Units, numbers: Numbers) -> list[dict[str, str]]:
    """Return warnings if the estimated spend exceeds the budget, or if much of the budget is unspent."""
    budget, planned, spend = finite_or_none(numbers["budget"]["average"]), numbers["planned"], numbers["spend"]
    if budget is None:
        return []
    warnings, low = [], finite_or_none(spend["low"])
    if low is not None and low > budget * (1 + 1e-9):
        style = units.spend_style(spend)
        text = (
            f"The plan is expected to cost {style.text(spend['estimate'])} per customer (at least {style.text(low)}), more than "
            f"the budget of {units.write_cost(budget)}: customers cost more than the model predicts. Plan with a smaller budget."
        )
        warnings.append({"answer": "careful", "text": text})
    if planned["confidence"] is not None and planned["price"]:
        text = (
            "The cost of the plan depends on what customers do. It was calibrated on held-out rows of the log: the plan aims at "
            f"{units.write_cost(planned['spend'])} per customer, so that the true cost is within the budget "
            f"of {units.write_cost(budget)} with a probability of {write_percent(planned['confidence'])}."
        )
        return [*warnings, {"answer": "note", "text": text}]
    if planned["spend"] < MIN_BUDGET_USE * budget:
        text = (
            f"The plan uses {units.write_cost(planned['spend'])} of the budget of {units.write_cost(budget)} per customer: "
            "the model expects nothing from spending more."
        )
        return [{"answer": "note", "text": text}]
    return warnings


def select_urgent_warnings(warnings: Sequence[Numbers]) -> list[dict[str, str]]:
    """Return the urgent warnings, the most serious first, each split after its first sentence."""
    shortened = []
    for warning in sorted((w for w in warnings if w["answer"] in URGENT), key=lambda w: URGENT.index(w["answer"])):
        first = take_first_sentence(warning["text"])
        shortened.append({"answer": warning["answer"], "text": first, "rest": warning["text"][len(first) :].strip()})
        shortened[-1]["topic"] = warning.get("topic", "")
    return shortened


def write_unequal_spending(attribute: Numbers, units: Units) -> str:
    """Write the groups of a protected attribute with clearly unequal spend, or an empty text."""
    known = [group for group in attribute["groups"] if finite_or_none(group["spend"]["low"]) is not None]
    if len(known) < 2:
        return ""
    low, high = (choose(known, key=lambda group: group["spend"]["estimate"]) for choose in (min, max))
    if high["spend"]["low"] <= low["spend"]["high"]:
        return ""
    least, most = (
        f"{quote_name(group['label'])} ({units.write_cost(group['spend']['estimate'])} each)" for group in (low, high)
    )
    return f"By {quote_name(attribute['column'])}, the plan spends clearly less on {least} than on {most}."


def list_risks(numbers: Numbers, units: Units) -> list[dict[str, str]]:
    """Write the reasons for which the report's numbers may be wrong: urgent warnings and assumptions.

    `rest` is the warning itself, if it says more.
    """
    urgent = list[dict[str, str]]()
    for warning in map(_shorten_known_warning, select_urgent_warnings(numbers["answer"]["warnings"])):
        same = next((risk for risk in urgent if risk["text"] == warning["text"]), None)
        if same is None:
            urgent.append(warning)
        else:
            same["rest"] += f" {warning['rest']}"
    unequal = filter(None, (write_unequal_spending(attribute, units) for attribute in numbers["protected"]))
    urgent += [{"answer": "careful", "text": text, "rest": ""} for text in unequal]
    risks, hidden = urgent[:MAX_SHOWN_WARNINGS], urgent[MAX_SHOWN_WARNINGS:]
    if hidden:
        text = "One more warning." if len(hidden) == 1 else f"{len(hidden)} more warnings."
        risks.append({"answer": hidden[0]["answer"], "text": text, "rest": " ".join(w["text"] for w in hidden)})
    assumptions = ["The next customers may respond differently from those of the log, for example in another season."]
    if numbers["log"]["propensity"] == "given":
        assumptions.insert(0, "The log’s probabilities of levels may be wrong. The numbers hold if they are right.")
    else:
        assumptions.insert(
            0, "Something that is not in the log may have decided who got more. The log cannot show that."
        )
    extra = numbers["uniform"][0]["difference"] if numbers["uniform"] else {}
    if (finite_or_none(extra.get("low")) or 0.0) <= 0 <= (finite_or_none(extra.get("high")) or 0.0):
        assumptions.insert(0, "The plan may bring nothing extra: the interval includes zero.")
    free = max(MIN_SHOWN_RISKS - len(risks), 0)
    return risks + [{"answer": "note", "text": text, "rest": ""} for text in assumptions[:free]]


def _shorten_known_warning(warning: Mapping[str, str]) -> dict[str, str]:
    text = SHORT_WARNINGS.get(warning["topic"])
    return {**warning, "text": text, "rest": f"{warning['text']} {warning['rest']}"} if text else dict(warning)


def select_note_warnings(warnings: Sequence[Numbers]) -> list[Numbers]:
    """Return the warnings that are not urgent."""
    return [warning for warning in warnings if warning["answer"] not in URGENT]


def take_first_sentence(text: str) -> str:
    """Return the first sentence of a text, where a point within a quoted name does not end it.

    >>> take_first_sentence("Too few rows: 'No. A' (3 rows). Try them first.")
    "Too few rows: 'No. A' (3 rows)."
    """
    plain = re.sub(r"(?<!\w)(['\"]).*?\1(?!\w)", lambda quoted: "x" * len(quoted[0]), text)
    end = re.search(r"[.?!](?=\s+[A-Z])", plain)
    return text if end is None else text[: end.end()]


def write_exploration_cost(exploration: Numbers | None, customers: int, units: Units) -> str:
    """Write the cost of exploration and the precision of the next log; empty without an exploration goal."""
    if exploration is None:
        return ""
    this, random = exploration["ways"][:2]
    cost = {"estimate": exploration["given_up"]}
    text = f"It gives up {units.gain_style(cost).text(cost['estimate'])} per customer"
    money = finite_or_none(exploration["money"])
    text += f", worth {units.write_cost(money)} of budget each" if money is not None else ""
    this_se, random_se = finite_or_none(this["gain_se"]), finite_or_none(random["gain_se"])
    if not this_se or not random_se:
        return f"{text}."
    style = units.gain_style({"estimate": REACH * random_se})
    return (
        f"{text}. With {write_count(customers)} customers, the next log is expected to measure the plan's gain to within ± "
        f"{style.text(REACH * this_se)}; levels drawn at random that give up as much would measure it to within "
        f"± {style.text(REACH * random_se)}."
    )
