"""First page of the report: verdict, extra responses, their cost, spend, levels by group, change, risks and next steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from largesse.report.charts.axes import fit_axis
from largesse.report.charts.row_charts import draw_spend_strip, draw_stacked_strip
from largesse.report.comparison_rows import FigureRow, FigureRows
from largesse.report.number_format import (
    MISSING_DASH,
    NO_INTERVAL,
    Numbers,
    NumberStyle,
    Units,
    View,
    choose_style,
    finite,
    half_width,
    label_interval,
    list_ends,
    write_count,
    write_percent,
)
from largesse.report.sections.next_steps import list_steps
from largesse.report.sentences import counts_revenue, describe_groups, list_risks, name_cheapest, quote, write_returned

CANNOT_SAY = "cannot say"


@dataclass(frozen=True)
class SummaryCard:
    """A number of the first page, with its interval, a sentence, and a figure if there is one."""

    title: str
    number: str
    interval: str
    sentence: str
    figure: str = ""


def view_summary(numbers: Numbers, units: Units) -> View:
    """Return the figures, sentences and steps of the first page."""
    before = numbers["versus"][1] if len(numbers["versus"]) > 1 else None
    return {
        "customers": write_count(numbers["customers"]),
        "budget": units.cost(numbers["budget"]["average"]),
        "cards": _list_cards(numbers, units),
        "groups": describe_groups(numbers),
        "bars": _view_shares(numbers),
        "before": [] if before is None else _view_before(numbers, before, units),
        "compared": "" if before is None else _write_change(numbers, before, units),
        "risks": list_risks(numbers, units),
        "steps": list_steps(numbers, units),
    }


def multiply(estimate: Numbers | None, factor: Any) -> dict[str, float | None]:
    """Return an estimate for all customers together."""
    n, known = finite(factor), {end: finite((estimate or {}).get(end)) for end in ("estimate", "low", "high")}
    return {end: None if number is None or n is None else number * n for end, number in known.items()}


def choose_total_style(total: Numbers, units: Units) -> NumberStyle:
    """Return the style of the responses of all customers: whole numbers, or amounts with their unit."""
    if units.brings_money:
        return units.value_style(total)
    style = choose_style(list_ends(total), half_width(total))
    return style if style.unit > 1 else replace(style, decimals=min(style.decimals, 0 if units.binary else 1))


# -- cards -------------------------------------------------------------------------------------------------------------


def _list_cards(numbers: Numbers, units: Units) -> list[SummaryCard]:
    """Return extra responses, their cost and the spend; where responses have a value, the profit, too."""
    cards = [_view_spend(numbers, units)]
    if numbers["uniform"]:
        cards = [_view_extra(numbers, units), _view_cost(numbers, units), *cards]
    return [*cards, _view_profit(numbers, units)] if numbers["profit"] else cards


def _view_extra(numbers: Numbers, units: Units) -> SummaryCard:
    """Return the responses that the cheapest level for everyone would not bring."""
    cheapest = numbers["uniform"][0]
    total, value = multiply(cheapest["difference"], numbers["customers"]), units.value_style(numbers["value"])
    style, base = choose_total_style(total, units), units.value_style(cheapest["value"])
    now, without = value.text(numbers["value"]["estimate"]), base.text(cheapest["value"]["estimate"])
    verb = "respond" if units.binary else "per customer"
    return SummaryCard(
        f"Extra {'responses' if units.binary else 'response'} from this plan",
        style.text(total["estimate"]),
        label_interval(style.interval(total)),
        f"{now} {verb}, instead of {without} if everyone got {quote(cheapest['name'])}.",
    )


def _view_cost(numbers: Numbers, units: Units) -> SummaryCard:
    """Return the cost of one extra response; of responses that are money, the return of each unit spent."""
    if numbers["profit"] and units.brings_money:
        returned = numbers["profit"]["returned"]
        number, interval = write_returned(units, returned.get("estimate")), ""
        if number != MISSING_DASH:
            interval = label_interval(units.profit.value_style(returned).interval(returned))
        sentence = f"Compared with {name_cheapest(numbers)}. Below {units.one_spent}, the plan loses money."
        return SummaryCard(f"What {units.one_spent} spent brings back", number, interval, sentence)
    one = "one extra response" if units.binary else "one extra unit of response"
    if units.brings_money:
        one = f"{units.response([1.0]).text(1.0)} more"
    return SummaryCard(f"What {one} costs", *write_extra_cost(numbers["uniform"][0], numbers, units))


def write_extra_cost(other: Numbers, numbers: Numbers, units: Units) -> tuple[str, str, str]:
    """Write the cost of one extra response compared with another plan: number, interval, and a sentence."""
    cost, more = other["cost_per_extra"] or {}, multiply(other["spend_difference"], numbers["customers"])
    low, high, estimate = (finite(cost.get(end)) for end in ("low", "high", "estimate"))
    if estimate is None:
        if (finite(other["difference"]["estimate"]) or 0.0) <= 0:
            return CANNOT_SAY, "", "The log shows no extra response."
        return units.cost(0.0), "", f"The plan costs no more than {name_cheapest(numbers)}."
    style = units.money([low, estimate, high], half_width(cost))
    if high is None and (finite(other["difference"]["low"]) or 0.0) <= 0:
        at_least = f"at least {style.text(low)}" if low is not None and low > 0 else ""
        return CANNOT_SAY, at_least, f"{style.text(estimate)} is the best guess, but the plan may bring nothing extra."
    interval = NO_INTERVAL if high is None or low is None else label_interval(style.interval(cost))
    return (
        style.text(estimate),
        interval,
        f"{units.total(more['estimate'])} more spend, divided by the extra responses.",
    )


def _view_spend(numbers: Numbers, units: Units) -> SummaryCard:
    spend, budget, confidence = numbers["spend"], numbers["budget"], numbers["planned"]["confidence"]
    style = units.spend_style(spend, budget["average"])
    axis = fit_axis([*list_ends(spend), budget["average"]], snug=True)
    label = f"Spend {style.text(spend['estimate'])} per customer, budget {style.text(budget['average'])}"
    limit = f"of {units.total(budget['total'])}" if finite(budget["total"]) is not None else "no budget is set"
    within = "" if confidence is None else f", kept with a probability of {write_percent(confidence)}"
    return SummaryCard(
        "Spend against budget",
        units.total(multiply(spend, numbers["customers"])["estimate"]),
        f"{limit}{within}",
        f"{style.text(spend['estimate'])} per customer ({style.interval(spend)}).",
        draw_spend_strip(axis, spend, budget["average"], label),
    )


def _view_profit(numbers: Numbers, units: Units) -> SummaryCard:
    total, gain = (multiply(numbers["profit"][key], numbers["customers"]) for key in ("own", "gain"))
    style = units.profit.value_style(total)
    even = ", as if all of the response were profit" if counts_revenue(units, numbers["profit"]) else ""
    return SummaryCard(
        "What is left after costs (profit)",
        style.text(total["estimate"]),
        label_interval(style.interval(total)),
        f"{units.profit.write_gain(gain)} against {name_cheapest(numbers)}{even}.",
    )


# -- before and after --------------------------------------------------------------------------------------------------


def _view_shares(numbers: Numbers) -> FigureRows:
    """Return the shares of customers at each level, in the log and in the plan."""
    rows, logged = numbers["money"]["levels"], numbers["support"]["overlap"]
    counts, bars = [finite(row["rows"]) or 0.0 for row in logged], []
    if len(logged) == len(rows) and any(counts):
        bars.append(_draw_bar("Before", [count / sum(counts) for count in counts], logged))
    bars.append(_draw_bar("This plan", [row["share"] for row in rows], rows))
    return FigureRows(bars)


def _draw_bar(label: str, shares: Sequence[Any], levels: Sequence[Numbers]) -> FigureRow:
    names = [level["name"] for level in levels]
    listed = ", ".join(f"{name} {write_percent(share)}" for name, share in zip(names, shares, strict=True))
    return FigureRow(label, draw_stacked_strip(shares, names, f"{label}, customers by level: {listed}"))


def _view_before(numbers: Numbers, before: Numbers, units: Units) -> list[dict[str, str]]:
    """Return a row for response and spend: before, with this plan, and the difference with its interval."""
    value, spend = units.value_style(before["value"]), units.spend_style(before["spend"], numbers["spend"]["estimate"])
    rows = [
        ("Respond" if units.binary else "Response", value, "value", units.write_gain(before["difference"])),
        ("Spend", spend, "spend", spend.with_interval(before["spend_difference"] or {}, signed=True)),
    ]
    if numbers["profit"] and before["profit"]:
        style = units.profit.value_style(before["profit"])
        plan = {**numbers, "profit": numbers["profit"]["own"]}
        rows.append(("Profit", style, "profit", units.profit.write_gain(before["profit_difference"])))
    else:
        plan = dict(numbers)
    return [
        {
            "name": name,
            "before": style.text(before[key]["estimate"]),
            "after": style.text(plan[key]["estimate"]),
            "change": change,
        }
        for name, style, key, change in rows
    ]


def _write_change(numbers: Numbers, before: Numbers, units: Units) -> str:
    """Write the difference from the past for all customers, with the cost of each extra response."""
    value, spend = (multiply(before[key], numbers["customers"]) for key in ("difference", "spend_difference"))
    amount, more, cost = finite(value["estimate"]), finite(spend["estimate"]), before["cost_per_extra"]
    if amount is None or more is None:
        return ""
    style = choose_total_style(value, units)
    noun = "" if units.brings_money else " responses" if units.binary else " of response"
    text = f"In all, {style.with_interval(value, signed=True)}{noun} for {units.total(abs(more))} {'less' if more < 0 else 'more'}"
    if cost is None or finite(cost.get("estimate")) is None or units.brings_money:
        return f"{text}."
    number, interval, _ = write_extra_cost(before, numbers, units)
    each = f"{number} each" if number != CANNOT_SAY else "cost of each: cannot say"
    return f"{text}: {each}{f', {interval}' if interval else ''}."
