"""What a campaign promised, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from largesse.records.array import Array
from largesse.records.display import Card, Shown
from largesse.records.evaluation import Estimate, Finding, spread_estimate, write_ends
from largesse.records.study import Leak

if TYPE_CHECKING:
    import pyarrow as pa

CODES = {"fine": 0, "careful": 10, "no": 20}  # exit codes; 2 stays that of errors
SERIOUS = ("no", "careful")


@dataclass(frozen=True, eq=False)
class Promise:
    """What a plan promised each of n customers who are in the new log, and how sure that was."""

    levels: Array  # (n,) int64: what the plan gives them
    expected: Array  # (n,) response at that level, as the plan has it
    costs: Array  # (n,) cost at that level, as the plan has it
    curves: Array  # (n, K) responses that the model expects of them today
    likely: Array | None = (
        None  # (n,) probability of that level, where the policy decides anew and draws; None: it is certain
    )
    propensity: Array | None = None  # (n,) of the plan's levels, where it was drawn
    honest: Estimate | None = None  # what the old log says must be added to the expected response, per customer
    spend_error: float = 0.0  # standard error of the promised spend, as a share of it
    joined: int | None = None  # rows that were found in the plan by their id; None: the policy decided anew
    outside: int = 0  # rows of the new log that are not in the plan
    price: float | None = None  # of the plan's budget; None where it cannot be compared
    price_now: Estimate | None = None  # of the same budget for today's customers; its error is that of both


@dataclass(frozen=True)
class KeptPromise:
    """A promise and what came, each with an interval; the difference allows for both."""

    promised: Estimate
    realised: Estimate
    difference: Estimate  # realised − promised
    p: float  # of no difference


@dataclass(frozen=True)
class KeptTenth:
    """A tenth of the customers, by promised gain over the cheapest level."""

    gain: float  # promised, per customer
    promised: float  # response
    realised: Estimate
    rows: int


@dataclass(frozen=True)
class FollowedLevel:
    """A level in the plan and in the new log."""

    name: str
    planned: int  # customers
    given: int
    followed: float  # share of those it was planned for who got it; NaN where it was planned for nobody


@dataclass(frozen=True)
class Drift:
    """By how much a column differs from the log that the model learnt from."""

    column: str
    psi: float  # population stability index: 0 where nothing changed; 0.25 is a lot
    p: float  # of no change, corrected for the number of columns


@dataclass(frozen=True, eq=False)
class CampaignCheck(Shown):
    """Whether a campaign went as promised: fine, careful or no, and the numbers behind it."""

    findings: tuple[Finding, ...]  # the most serious first
    rows: int
    joined: int | None
    value: KeptPromise
    spend: KeptPromise
    tenths: tuple[KeptTenth, ...]
    levels: tuple[FollowedLevel, ...]
    followed: float  # share of customers who got the planned level
    drifts: tuple[Drift, ...]  # the largest first; empty where there is nothing to compare with
    price: tuple[float, Estimate] | None  # then and now
    leaks: tuple[Leak, ...]

    @property
    def answer(self) -> str:
        """The most serious answer: fine, careful or no. Notes do not count."""
        return next((word for word in SERIOUS if any(found.answer == word for found in self.findings)), "fine")

    @property
    def code(self) -> int:
        """The exit code for a scheduler: 0 fine, 10 careful, 20 no."""
        return CODES[self.answer]

    def __repr__(self) -> str:
        checks = "; ".join(f"{finding.topic}: {finding.answer}" for finding in self.findings)
        return f"CampaignCheck({self.rows:,} rows, {self.answer}: {checks})"

    def card(self) -> Card:
        """Return all findings, and promise against result."""
        rows = [(found.topic, found.answer, found.text) for found in self.findings]
        kept = [
            (
                name,
                one.promised.estimate,
                one.realised.estimate,
                write_ends(one.realised.interval),
                one.difference.estimate,
            )
            for name, one in (("value", self.value), ("spend", self.spend))
        ]
        below = Card("Per customer", ("", "promised", "realised", "95 %", "difference"), kept)
        return Card(f"Campaign of {self.rows:,} rows: {self.answer}", ("check", "answer", ""), rows, below=below)

    def to_arrow(self) -> pa.Table:
        """Return promise and result by tenth of promised gain."""
        import pyarrow as pa

        rows = [
            {"tenth": place, "gain": one.gain, "promised": one.promised, **spread_estimate("realised", one.realised)}
            for place, one in enumerate(self.tenths, 1)
        ]
        return pa.Table.from_pylist(rows)
