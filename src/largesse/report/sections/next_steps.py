"""Section with the recommended next steps, which follow the verdict."""

from __future__ import annotations

from typing import Any

from largesse.report.number_format import Numbers, Units, View, finite
from largesse.report.sentences import (
    find_evidence,
    is_same_for_all,
    judge_profit,
    name_mix,
    name_option,
    select_urgent,
    write_about,
    write_best_budget,
    write_exploration,
)


def view_next_steps(numbers: Numbers, units: Units) -> View | None:
    """Return the words of the steps; None if the plan is compared with nothing."""
    if not numbers["versus"]:
        return None
    verdict, best, loses = numbers["verdict"], numbers["best_budget"], judge_profit(numbers) == "loses"
    advised, same_for_all = verdict["recommended"], is_same_for_all(verdict)
    below_best = loses or (best is not None and not best["may_be_this"])
    explored = write_exploration(numbers["exploration"], numbers["customers"], units)
    tested = name_option(advised if advised == "rule" else "plan")
    return {
        "warned": bool(select_urgent(numbers["answer"]["warnings"])),
        "loses": loses,
        "best": write_best_budget(units, numbers) if below_best else "",
        "recommended": advised,
        "same_for_all": same_for_all,
        "simpler": numbers["versus"][0]["detail"] if advised == "mix" and not same_for_all else "",
        "rule": numbers["safety"]["options"][1]["detail"] if advised == "rule" else "",
        "explore": {} if explored or loses else view_exploration(numbers, units),
        "explored": explored,
        "test": ""
        if same_for_all or (advised not in ("plan", "rule") and finite(verdict["needed_rows"]) is None)
        else f"Assign customers at random, half of them to {tested}, half to {name_mix(numbers)} at the same cost, and compare "
        f"what the halves bring. {write_needed_rows(numbers)}".strip(),
    }


def view_exploration(numbers: Numbers, units: Units) -> View:
    """Return the command that explores until the verdict is settled, with its customers and its cost; empty if none would."""
    next_log = numbers.get("next_log")
    if next_log is None:
        return {}
    customers, lost = next_log["customers"], next_log["given_up"]
    total = {"estimate": lost * customers}
    cost = f"{write_about(lost * customers)} responses"
    if not units.binary:
        cost = f"about {units.value_style(total).text(total['estimate'])} of response"
    money = finite(next_log["money"])
    return {
        "command": f"largesse plan RUN --explore {next_log['rate']:g} --explore-for evaluation",
        "customers": write_about(customers),
        "cost": f"{cost} in all ({units.gain_style({'estimate': lost}).text(lost)} per customer)"
        + ("" if money is None else f", worth {units.total(money * customers)} of budget"),
    }


def write_needed_rows(numbers: Numbers) -> str:
    """Write the size of a log like this one that would show the expected gain; empty if the gain is shown or not expected."""
    verdict, evidence = numbers["verdict"], find_evidence(numbers["verdict"])
    needed: Any = finite(verdict["needed_rows"])
    if evidence is None or verdict["grade"] == "proved" or not (finite(evidence["gain"]["estimate"]) or 0.0) > 0:
        return ""
    if needed is None:
        return "The expected gain is so small that no log of a realistic size would show it."
    times = needed / numbers["log"]["rows"]
    return (
        f"A log like this one would show the expected gain with {write_about(needed)} rows, {times:.1f} times as many."
    )
