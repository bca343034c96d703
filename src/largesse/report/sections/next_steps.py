"""Section with recommended next steps."""

from __future__ import annotations

from typing import Any

from largesse.report.number_format import Numbers, Units, View, finite_or_none
from largesse.report.sentences import (
    classify_profit,
    find_recommended_evidence,
    gives_everyone_same_level,
    write_best_budget,
    write_exploration_cost,
    write_mix_name,
    write_option_name,
    write_rounded_count,
)

PLAN_COMMAND = "largesse plan RUN --as {kind} --out plan.csv"


def list_next_steps(numbers: Numbers, units: Units) -> list[View]:
    """Return the recommended steps, each with a title, a sentence and possibly a command."""
    if not numbers["versus"]:
        return []
    verdict, best = numbers["verdict"], numbers["best_budget"]
    loses, advised, same_for_all = (
        classify_profit(numbers) == "loses",
        verdict["recommended"],
        gives_everyone_same_level(verdict),
    )
    explored = write_exploration_cost(numbers["exploration"], numbers["customers"], units)
    explore = {} if explored or loses else view_exploration_step(numbers, units)
    steps: list[tuple[str, str, str]] = []
    if loses or (best is not None and not best["may_be_this"]):
        title = "Spend less: this plan does not earn back its cost." if loses else "Consider another budget."
        steps.append((title, "", write_best_budget(units, numbers)))
    if advised is None:
        text = "Give some customers levels at random, record the probabilities, and run the campaign again."
        steps.append(("Do not decide by this log.", "", text))
    elif advised == "rule":
        steps.append(
            ("Use the simple rule:", PLAN_COMMAND.format(kind="rule"), numbers["safety"]["options"][1]["detail"])
        )
    elif advised == "before":
        steps.append(("Keep what was done before,", "", "or plan with another budget."))
    elif advised == "mix" and not same_for_all:
        steps.append(("Use the simpler plan:", PLAN_COMMAND.format(kind="mix"), numbers["versus"][0]["detail"]))
    elif not explore and not loses:
        steps.append(("Use the plan:", PLAN_COMMAND.format(kind="plan"), "one row per customer"))
    if explore:
        text = f"after {explore['customers']} customers this log alone should show the gain; gives up {explore['cost']}"
        steps.append(("Use it, and learn from it:", explore["command"], text))
    if explored:
        steps.append(("This plan explores,", "", f"so that the next log can judge it. {explored}"))
    if (
        not same_for_all
        and not loses
        and (advised in ("plan", "rule") or finite_or_none(verdict["needed_rows"]) is not None)
    ):
        tested = write_option_name(advised if advised == "rule" else "plan")
        mix = write_mix_name(numbers)
        text = (
            f"half of the customers at random get {tested}, half {mix} at the same cost. {write_needed_rows(numbers)}"
        )
        title = "Test it before everyone gets it:" if advised in ("plan", "rule") else "A test can still show a gain:"
        steps.append((title, "largesse power RUN --incumbent uniform", text.strip()))
    text = "record each customer’s possible levels with their probabilities, the level given, and the response."
    steps.append(("Keep the next log:", "", text))
    return [
        {"title": title, "command": _split_command_at_options(command), "text": text and f"{text.rstrip('.')}."}
        for title, command, text in steps
    ]


def _split_command_at_options(command: str) -> list[str]:
    """Split a command line before each option into parts that a page may break.

    >>> _split_command_at_options("largesse plan RUN --as mix --out plan.csv")
    ['largesse plan RUN', '--as mix', '--out plan.csv']
    """
    first, *options = command.split(" --")
    return [first, *(f"--{option}" for option in options)] if command else []


def view_exploration_step(numbers: Numbers, units: Units) -> View:
    """Return the advice to explore until the verdict is certain; empty if exploration cannot make it certain."""
    next_log = numbers.get("next_log")
    if next_log is None:
        return {}
    customers, lost = next_log["customers"], next_log["given_up"]
    total = {"estimate": lost * customers}
    cost = f"{write_rounded_count(lost * customers)} responses"
    if not units.has_binary_response:
        cost = f"about {units.value_style(total).text(total['estimate'])} of response"
    money = finite_or_none(next_log["money"])
    return {
        "command": f"largesse plan RUN --explore {next_log['rate']:g} --explore-for evaluation",
        "customers": write_rounded_count(customers),
        "cost": cost + ("" if money is None else f", worth {units.write_total_cost(money * customers)} of budget"),
    }


def write_needed_rows(numbers: Numbers) -> str:
    """Write the number of log rows that would prove the expected gain; empty if the gain is proved or negative."""
    verdict, evidence = numbers["verdict"], find_recommended_evidence(numbers["verdict"])
    needed: Any = finite_or_none(verdict["needed_rows"])
    if (
        evidence is None
        or verdict["grade"] == "proved"
        or not (finite_or_none(evidence["gain"]["estimate"]) or 0.0) > 0
    ):
        return ""
    if needed is None:
        return "The expected gain is so small that no log of a realistic size would show it."
    times = needed / numbers["log"]["rows"]
    return f"A log like this one would show the expected gain with {write_rounded_count(needed)} rows, {times:.1f} times as many."
