"""What to do with this answer: read the warnings, hand out the plan or the simpler one, test it, keep the next log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from largesse.report.exploration import write_explored
from largesse.report.formats import Units, finite, write_count
from largesse.report.section import Numbers, Part, Section
from largesse.report.words import is_mixed, judge, select_urgent

NEEDED = 1.96 + 0.84  # standard errors: a gain this far from zero is shown in four of five logs
MOST = 1000  # times the rows of the log: nobody has more


def view_next_steps(numbers: Numbers, units: Units) -> Part | None:
    """Return what the steps say; None where the plan is compared with nothing."""
    if not numbers["versus"]:
        return None
    same = numbers["versus"][0]
    judged = judge(same["difference"])
    simpler = "levels drawn at random" if is_mixed(same) else "the same level for everyone"
    half = f"half of the customers to this plan and half to {simpler}"
    return {
        "warned": bool(select_urgent(numbers["answer"]["warnings"])),
        "judged": judged,
        "simpler": f"{simpler}: {same['detail']}",
        "test": f"Draw {half}, at random and at the same cost, and compare what they bring.",
        "explored": write_explored(numbers.get("exploration"), numbers["customers"], units),
        "settled": write_settled(numbers["log"]["rows"], same["difference"], units) if judged == "open" else "",
    }


def write_settled(rows: int, gain: Mapping[str, Any], units: Units) -> str:
    """Say how many rows a log needs to show a gain that this one leaves open, if the gain is what it seems."""
    estimate, se = finite(gain.get("estimate")), finite(gain.get("se"))
    if not estimate or not se:
        return ""
    times = (NEEDED * se / estimate) ** 2
    size = units.gain_style(gain).text(abs(estimate))
    if times > MOST:
        return f"The difference is so small ({size}) that no log of a realistic size would settle it."
    way = "gains" if estimate > 0 else "loses"
    return (
        f"If choosing really {way} {size}, a log of about {write_count(float(f'{rows * times:.1e}'))} rows, "
        f"{times:.1f} times this one, would show it in four of five cases."
    )


SECTION = Section("next_steps", view_next_steps, "What to do next")
