"""Summary page of the report: verdict, extra responses, cost, spend, levels, risks and next steps."""

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
    add_interval_label,
    choose_style,
    finite_or_none,
    list_estimate_and_ends,
    measure_half_width,
    write_count,
    write_percent,
)
from largesse.report.sections.next_steps import list_next_steps
from largesse.report.sentences import (
    counts_revenue_as_profit,
    list_risks,
    quote_name,
    write_cheapest_alternative,
    write_group_sentences,
    write_return_per_unit,
)

CANNOT_SAY = "cannot say"


@dataclass(frozen=True)
class SummaryCard:
    """Number on the summary page with its interval, sentence and figure."""

    title: str
    number: str
    interval: str
    sentence: str
    figure: str = ""


def view_summary(numbers: Numbers, units: Units) -> View:
    """Return the template values of the summary page."""
    before = numbers["versus"][1] if len(numbers["versus"]) > 1 else None
    return {
        "customers": write_count(numbers["customers"]),
        "budget": units.write_cost(numbers["budget"]["average"]),
        "cards": _list_summary_cards(numbers, units),
        "groups": write_group_sentences(numbers),
        "bars": _view_level_shares(numbers),
        "before": [] if before is None else _view_before_and_after(numbers, before, units),
        "compared": "" if before is None else _write_total_change(numbers, before, units),
        "risks": list_risks(numbers, units),
        "steps": list_next_steps(numbers, units),
    }


def scale_estimate(estimate: Numbers | None, factor: Any) -> dict[str, float | None]:
    """Multiply an estimate and the ends of its interval by a factor."""
    n, known = (
        finite_or_none(factor),
        {end: finite_or_none((estimate or {}).get(end)) for end in ("estimate", "low", "high")},
    )
    return {end: None if number is None or n is None else number * n for end, number in known.items()}


def choose_total_response_style(total: Numbers, units: Units) -> NumberStyle:
    """Return the number format of all customers' responses together."""
    if units.has_amount_unit:
        return units.value_style(total)
    style = choose_style(list_estimate_and_ends(total), measure_half_width(total))
    return (
        style if style.unit > 1 else replace(style, decimals=min(style.decimals, 0 if units.has_binary_response else 1))
    )


# -- cards -------------------------------------------------------------------------------------------------------------


def _list_summary_cards(numbers: Numbers, units: Units) -> list[SummaryCard]:
    """Return the cards of extra responses, their cost, the spend and, if known, the profit."""
    cards = [_view_spend(numbers, units)]
    if numbers["uniform"]:
        cards = [_view_extra_responses(numbers, units), _view_cost_per_response(numbers, units), *cards]
    return [*cards, _view_profit(numbers, units)] if numbers["profit"] else cards


def _view_extra_responses(numbers: Numbers, units: Units) -> SummaryCard:
    """Return the card of responses beyond those at the cheapest level for everyone."""
    cheapest = numbers["uniform"][0]
    total, value = scale_estimate(cheapest["difference"], numbers["customers"]), units.value_style(numbers["value"])
    style, base = choose_total_response_style(total, units), units.value_style(cheapest["value"])
    now, without = value.text(numbers["value"]["estimate"]), base.text(cheapest["value"]["estimate"])
    verb = "respond" if units.has_binary_response else "per customer"
    return SummaryCard(
        f"Extra {'responses' if units.has_binary_response else 'response'} from this plan",
        style.text(total["estimate"]),
        add_interval_label(style.interval(total)),
        f"{now} {verb}, instead of {without} if everyone got {quote_name(cheapest['name'])}.",
    )


def _view_cost_per_response(numbers: Numbers, units: Units) -> SummaryCard:
    """Return the card of the cost per extra response, or the return per unit spent."""
    if numbers["profit"] and units.has_amount_unit:
        returned = numbers["profit"]["returned"]
        number, interval = write_return_per_unit(units, returned.get("estimate")), ""
        if number != MISSING_DASH:
            interval = add_interval_label(units.profit.value_style(returned).interval(returned))
        sentence = (
            f"Compared with {write_cheapest_alternative(numbers)}. Below {units.spent_unit_text}, the plan loses money."
        )
        return SummaryCard(f"What {units.spent_unit_text} spent brings back", number, interval, sentence)
    one = "one extra response" if units.has_binary_response else "one extra unit of response"
    if units.has_amount_unit:
        one = f"{units.response([1.0]).text(1.0)} more"
    return SummaryCard(f"What {one} costs", *write_extra_cost(numbers["uniform"][0], numbers, units))


def write_extra_cost(other: Numbers, numbers: Numbers, units: Units) -> tuple[str, str, str]:
    """Write the cost of one extra response over another plan: number, interval and sentence."""
    cost, more = other["cost_per_extra"] or {}, scale_estimate(other["spend_difference"], numbers["customers"])
    low, high, estimate = (finite_or_none(cost.get(end)) for end in ("low", "high", "estimate"))
    if estimate is None:
        if (finite_or_none(other["difference"]["estimate"]) or 0.0) <= 0:
            return CANNOT_SAY, "", "The log shows no extra response."
        return units.write_cost(0.0), "", f"The plan costs no more than {write_cheapest_alternative(numbers)}."
    style = units.money([low, estimate, high], measure_half_width(cost))
    if high is None and (finite_or_none(other["difference"]["low"]) or 0.0) <= 0:
        at_least = f"at least {style.text(low)}" if low is not None and low > 0 else ""
        return CANNOT_SAY, at_least, f"{style.text(estimate)} is the best guess, but the plan may bring nothing extra."
    interval = NO_INTERVAL if high is None or low is None else add_interval_label(style.interval(cost))
    return (
        style.text(estimate),
        interval,
        f"{units.write_total_cost(more['estimate'])} more spend, divided by the extra responses.",
    )


def _view_spend(numbers: Numbers, units: Units) -> SummaryCard:
    spend, budget, confidence = numbers["spend"], numbers["budget"], numbers["planned"]["confidence"]
    style = units.spend_style(spend, budget["average"])
    axis = fit_axis([*list_estimate_and_ends(spend), budget["average"]], snug=True)
    label = f"Spend {style.text(spend['estimate'])} per customer, budget {style.text(budget['average'])}"
    limit = (
        f"of {units.write_total_cost(budget['total'])}"
        if finite_or_none(budget["total"]) is not None
        else "no budget is set"
    )
    within = "" if confidence is None else f", kept with a probability of {write_percent(confidence)}"
    return SummaryCard(
        "Spend against budget",
        units.write_total_cost(scale_estimate(spend, numbers["customers"])["estimate"]),
        f"{limit}{within}",
        f"{style.text(spend['estimate'])} per customer ({style.interval(spend)}).",
        draw_spend_strip(axis, spend, budget["average"], label),
    )


def _view_profit(numbers: Numbers, units: Units) -> SummaryCard:
    total, gain = (scale_estimate(numbers["profit"][key], numbers["customers"]) for key in ("own", "gain"))
    style = units.profit.value_style(total)
    even = ", as if all of the response were profit" if counts_revenue_as_profit(units, numbers["profit"]) else ""
    return SummaryCard(
        "What is left after costs (profit)",
        style.text(total["estimate"]),
        add_interval_label(style.interval(total)),
        f"{units.profit.write_gain(gain)} against {write_cheapest_alternative(numbers)}{even}.",
    )


# -- before and after --------------------------------------------------------------------------------------------------


def _view_level_shares(numbers: Numbers) -> FigureRows:
    """Return figure rows of the shares of customers at each level, in the log and in the plan."""
    rows, logged = numbers["money"]["levels"], numbers["support"]["overlap"]
    counts, bars = [finite_or_none(row["rows"]) or 0.0 for row in logged], []
    if len(logged) == len(rows) and any(counts):
        bars.append(_make_share_row("Before", [count / sum(counts) for count in counts], logged))
    bars.append(_make_share_row("This plan", [row["share"] for row in rows], rows))
    return FigureRows(bars)


def _make_share_row(label: str, shares: Sequence[Any], levels: Sequence[Numbers]) -> FigureRow:
    names = [level["name"] for level in levels]
    listed = ", ".join(f"{name} {write_percent(share)}" for name, share in zip(names, shares, strict=True))
    return FigureRow(label, draw_stacked_strip(shares, names, f"{label}, customers by level: {listed}"))


def _view_before_and_after(numbers: Numbers, before: Numbers, units: Units) -> list[dict[str, str]]:
    """Return table rows of response and spend under the logged policy, under the plan, and their difference."""
    value, spend = units.value_style(before["value"]), units.spend_style(before["spend"], numbers["spend"]["estimate"])
    rows = [
        (
            "Respond" if units.has_binary_response else "Response",
            value,
            "value",
            units.write_gain(before["difference"]),
        ),
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


def _write_total_change(numbers: Numbers, before: Numbers, units: Units) -> str:
    """Write the total change in responses and cost from the logged policy to the plan."""
    value, spend = (scale_estimate(before[key], numbers["customers"]) for key in ("difference", "spend_difference"))
    amount, more, cost = finite_or_none(value["estimate"]), finite_or_none(spend["estimate"]), before["cost_per_extra"]
    if amount is None or more is None:
        return ""
    style = choose_total_response_style(value, units)
    noun = "" if units.has_amount_unit else " responses" if units.has_binary_response else " of response"
    added_cost = f"{units.write_total_cost(abs(more))} {'less' if more < 0 else 'more'}"
    text = f"In all, {style.with_interval(value, signed=True)}{noun} for {added_cost}"
    if cost is None or finite_or_none(cost.get("estimate")) is None or units.has_amount_unit:
        return f"{text}."
    number, interval, _ = write_extra_cost(before, numbers, units)
    each = f"{number} each" if number != CANNOT_SAY else "cost of each: cannot say"
    return f"{text}: {each}{f', {interval}' if interval else ''}."
