"""Section with the recommended next steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from largesse.report.number_format import Units, write_count
from largesse.report.section import Numbers, Part, Section
from largesse.report.sentences import (
    find_advised,
    find_advised_rule,
    is_mixed,
    judge,
    judge_profit,
    select_urgent,
    write_best,
    write_explored,
)


def view_next_steps(numbers: Numbers, units: Units) -> Part | None:
    """Return what the steps say; None where the plan is compared with nothing."""
    if not numbers["versus"]:
        return None
    same = numbers["versus"][0]
    judged = judge(same["difference"])
    simpler = "levels drawn at random" if is_mixed(same) else "the same level for everyone"
    rule, alike = find_advised_rule(numbers["safety"]), find_advised(numbers["safety"]) is None
    half = f"half of them to {'the simple rule' if rule else 'this plan'}, half to {simpler} at the same cost"
    return {
        "warned": bool(select_urgent(numbers["answer"]["warnings"])),
        "loses": judge_profit(numbers) == "loses",
        "best": write_best(units, numbers) if _is_clearly_below_best(numbers) else "",
        "judged": judged,
        "simpler": f"{simpler}: {same['detail']}" if alike and judged != "equal" else "",
        "rule": rule["detail"] if rule else "",
        "test": f"Assign customers at random, {half}, and compare what the halves bring.",
        "explored": write_explored(numbers["exploration"], numbers["customers"], units),
        "settled": write_settled(numbers["needed_rows"], same["difference"], units)
        if judged == "open" and alike
        else "",
    }


def _is_clearly_below_best(numbers: Numbers) -> bool:
    """Whether the plan loses money, or another budget clearly leaves more."""
    best = numbers["best_budget"]
    return judge_profit(numbers) == "loses" or (best is not None and not best["may_be_this"])


def write_settled(needed: Mapping[str, Any] | None, gain: Mapping[str, Any], units: Units) -> str:
    """Say how many rows a log needs to show a gain that this one leaves open, if the gain is what it seems."""
    if needed is None:
        return ""
    size = units.gain_style(gain).text(abs(gain["estimate"]))
    if needed["rows"] is None:
        return f"The difference is so small ({size}) that no log of a realistic size would settle it."
    about = float(f"{needed['rows']:.1e}")
    way = "gains" if gain["estimate"] > 0 else "loses"
    return (
        f"If choosing really {way} {size}, a log of about {write_count(about)} rows, "
        f"{needed['times']:.1f} times this one, would show it in four of five cases."
    )


SECTION = Section("next_steps", view_next_steps, "What to do next")
