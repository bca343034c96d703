"""Section with the recommended next steps."""

from __future__ import annotations

from largesse.report.number_format import Numbers, Units, View, write_count
from largesse.report.sentences import (
    find_advised,
    find_advised_rule,
    is_random_mix,
    judge_gain,
    judge_profit,
    select_urgent,
    write_best_budget,
    write_exploration,
)


def view_next_steps(numbers: Numbers, units: Units) -> View | None:
    """Return the words of the steps; None if the plan is compared with nothing."""
    if not numbers["versus"]:
        return None
    same, best = numbers["versus"][0], numbers["best_budget"]
    judged, loses = judge_gain(same["difference"]), judge_profit(numbers) == "loses"
    simpler = "levels drawn at random" if is_random_mix(same) else "the same level for everyone"
    rule, advised = find_advised_rule(numbers["safety"]), find_advised(numbers["safety"])
    half = f"half of them to {'the simple rule' if rule else 'this plan'}, half to {simpler} at the same cost"
    below_best = loses or (best is not None and not best["may_be_this"])
    is_open = judged == "open" and advised is None
    return {
        "warned": bool(select_urgent(numbers["answer"]["warnings"])),
        "loses": loses,
        "best": write_best_budget(units, numbers) if below_best else "",
        "judged": judged,
        "simpler": f"{simpler}: {same['detail']}" if advised is None and judged != "equal" else "",
        "rule": rule["detail"] if rule else "",
        "test": f"Assign customers at random, {half}, and compare what the halves bring.",
        "explored": write_exploration(numbers["exploration"], numbers["customers"], units),
        "needed": write_needed_rows(numbers["needed_rows"], same["difference"], units) if is_open else "",
    }


def write_needed_rows(needed: Numbers | None, gain: Numbers, units: Units) -> str:
    """Write the size of a log that would show a gain which this log leaves open."""
    if needed is None:
        return ""
    size = units.gain_style(gain).text(abs(gain["estimate"]))
    if needed["rows"] is None:
        return f"The difference is so small ({size}) that no log of a realistic size would settle it."
    rows, verb = write_count(float(f"{needed['rows']:.1e}")), "gains" if gain["estimate"] > 0 else "loses"
    return (
        f"If choosing really {verb} {size}, a log of about {rows} rows, {needed['times']:.1f} times this one, would show it in "
        "four of five cases."
    )
