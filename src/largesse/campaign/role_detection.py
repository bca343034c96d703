"""Detection of column roles (level, response, …) from names, in English and German, and from values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import TYPE_CHECKING

import numpy as np

from largesse.data import (
    convert_to_floats,
    decode_dictionary,
    find_feature_kind,
    index_distinct_values,
    means_no_incentive,
    split_words,
)
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa

MAX_LEVELS = 20
MIN_CLUSTERS = 10  # fewer stores or groups than this are a feature
CHANCE = 1e-9  # probability below which a column is not filled only after responses by chance
IDENTIFIER = "an identifier"
AFTER_RESPONSE = "is filled only where there was a response"
SET_WITH_LEVEL = "has one value for each level"
EXCLUDED = "as you said"
BY_NAME = "by its name and values"
MIN_ID_VALUES = 20  # distinct values of a column whose name ends in "id" but is no word of NUMBERED
MIN_NUMBERED_ROWS = 50

# Words of names.
NUMBERED = split_words("id ids no nr num number nummer key uuid guid code")
PEOPLE = split_words("customer user client member person account subscriber kunde kunden mitglied konto nutzer")
HOMES = split_words("cluster household households hh haushalt haushalte village dorf family familie school")
PLACES = split_words("store shop filiale branch group gruppe")
WEIGHT = split_words("weight weights wt wgt gewicht gewichte gewichtung")
OTHER_SCORES = split_words("buy churn purchase kauf to click response")  # propensity to buy, not of a level
# A time before the levels were given, or a frequency: not the response.
EARLIER = split_words(
    "prev previous prior past last before history hist pre lag old avg mean median num number count anzahl since "
    "days months recency letzte letztes letzten vor vorher vorjahr bisher to"
)
EARLIER_TIME = re.compile(
    r"(19|20)\d\d|\d+[dmwy]|(letzt|vorherig|vorjahr|vorperiode|preperiod|precampaign|pretreat|baseline)\w*"
)
WORDS_IN_ID = split_words(
    "acid aid android avid bid braid covid did fluid grid hybrid kid maid mid paid prepaid rapid said solid steroid unpaid valid void"
)
JOINED_ID = re.compile(
    r"^(customer|user|client|member|account|kunden?|person(en)?|haushalts?|household)(id|nr|no|nummer|number)$"
)
TREATMENT = re.compile(
    r"^level$|coupon|incentive|treat|discount|^offer$|voucher|bonus|subsid|^arm$|^action$|^dose$|promo|^match$"
    r"|gutschein|rabatt|anreiz|praemie|prämie|zuschuss|angebot"
)
OUTCOME = re.compile(
    r"^(response|reward|spend|spent|got|gave|y|r|out|voted?|visit(ed)?|tookup|sales?|sold|profit|churned|signup|opened|ordered"
    r"|kauf|gekauft|umsatz|umsätze|erlös|ertrag|bestellt|bestellung|antwort|reagiert|gewählt|eingelöst|abschluss|spende|besuch)$"
    r"|^(answer(ed)?|said\w*|accepted|subscribed|enrolled|attended|zugesagt|geantwortet)$"
    r"|bought|convert|conversion|purchase|redeem|redempt|respond|respons|outcome|click|revenue|applied|gave|donat"
)
REDEEMED = re.compile(
    r"eingelöst|redeem|redempt|accepted|genutzt|angenommen"
)  # of an incentive: an outcome, not a level
# Attributes that a plan may not follow in many countries and companies.
PROTECTED = re.compile(
    r"^(sex|gender|female|male|women|men|race|black|white|asian|hispanic|geschlecht|mann|frau|konfession|glaube|herkunft)$"
    r"|^relig|muslim|christian|jewish|hindu|buddhis|catholic|protestant|ethnic|nationality|staatsang|disab|behinder|pregnan|schwanger"
)
COST = re.compile(r"^(costs?|paid|payout|reimbursed|kosten|bezahlt|gezahlt|ausgezahlt|erstattet)$")
PROPENSITY = re.compile(r"propensit|^pscore$|^prob(ability)?$|^ps$|^p$")
CONTROL = re.compile(r"^(control|holdout|placebo|untreated|kontroll\w*)\b", re.IGNORECASE)  # in values, not in names


@dataclass(frozen=True)
class DraftColumn:
    """Kind, values and distinct words of one table column, for the detection of its role."""

    name: str
    kind: str  # number, text, date, nothing or other
    distinct: int
    values: Array | None  # finite numbers only
    learnable: bool = True  # whether it can be a feature
    words: tuple[str, ...] = ()  # the values of a text column with at most `MAX_SPLIT_LEVEL` of them

    @property
    def name_words(self) -> tuple[str, ...]:
        """Lower-case words of the column's name, such as kunden and nr for ``Kunden-Nr.``."""
        spaced = re.sub(r"(?<=[a-zäöüß0-9])(?=[A-ZÄÖÜ])", " ", self.name)
        return tuple(token for token in re.split(r"[\W_]+", spaced.casefold()) if token)

    @property
    def is_id(self) -> bool:
        """True if the column's name is that of an identifier."""
        tokens = self.name_words
        if any(token in ("id", "ids", "uuid", "guid") or JOINED_ID.match(token) for token in tokens):
            return True
        if tokens and tokens[-1].endswith("id") and tokens[-1] not in WORDS_IN_ID and self.distinct >= MIN_ID_VALUES:
            return True
        return bool(tokens) and PEOPLE.union(HOMES, NUMBERED).issuperset(tokens) and not HOMES.issuperset(tokens)

    @property
    def looks_protected(self) -> bool:
        """True if the column's name is that of a protected attribute, such as sex or religion."""
        return self.name_matches(PROTECTED)

    def is_row_number(self, rows: int) -> bool:
        """Test if the values are consecutive whole numbers, one for each row."""
        if self.values is None or self.distinct != rows or rows < MIN_NUMBERED_ROWS:
            return False
        return bool(self.values.max() - self.values.min() == rows - 1 and (self.values % 1 == 0).all())

    @property
    def is_zero_or_one(self) -> bool:
        """True if the values are 0 and 1."""
        return self.values is not None and self.distinct == 2 and bool(((self.values == 0) | (self.values == 1)).all())

    def name_matches(self, pattern: re.Pattern[str]) -> bool:
        """Test if the column's name, or a word of it, matches a pattern."""
        return any(pattern.search(token) for token in (*self.name_words, "".join(self.name_words)))

    def name_matches_without_past(self, pattern: re.Pattern[str]) -> bool:
        """Test if the column's name matches a pattern and does not refer to the past."""
        earlier = EARLIER.intersection(self.name_words) or any(
            EARLIER_TIME.fullmatch(token) for token in self.name_words
        )
        return not earlier and self.name_matches(pattern)

    def has_values_between(self, low: float, high: float = np.inf) -> bool:
        """Test if all values are numbers within a range."""
        return self.values is not None and bool(self.values.min() >= low and self.values.max() <= high)


@dataclass(frozen=True)
class RoleGuesses:
    """Guessed column of each role, with alternatives, reasons and unsuitable columns."""

    roles: Mapping[str, str]  # level and response may be missing
    others: Mapping[str, tuple[str, ...]]  # role → further columns that could be it, the likeliest first
    left_out: Mapping[str, str] = field(default_factory=dict)  # column → why it is not offered as a feature
    reasons: Mapping[str, str] = field(default_factory=dict)  # role → why it has its column
    doubts: Mapping[str, str] = field(default_factory=dict)  # feature → why it may be no feature
    unit: str = ""  # the column within whose values levels are constant, if it is proposed as the cluster


def guess_roles(columns: Sequence[DraftColumn], rows: int, known: Mapping[str, str] | None = None) -> RoleGuesses:
    """Guess the column of each role, and keep known roles."""
    roles = dict(known or {})
    others: dict[str, tuple[str, ...]] = {}
    reasons = dict.fromkeys(roles, EXCLUDED)

    def free() -> list[DraftColumn]:
        return [column for column in columns if column.name not in roles.values()]

    tests: dict[str, Callable[[DraftColumn], bool]] = {
        "propensity": _may_be_propensity,
        "weight": lambda c: bool(WEIGHT.intersection(c.name_words)) and c.has_values_between(0),
        "cluster": lambda c: _may_be_cluster(c, rows),
        "logger": lambda c: 0 < c.distinct <= 100 and bool({"logger", "logging", "policy"}.intersection(c.name_words)),
        "customer": lambda c: _may_be_customer(c, rows),
        "level": _may_be_level,
        "response": lambda c: (
            c.values is not None and c.distinct >= 2 and c.name_matches_without_past(OUTCOME) and not c.is_id
        ),
    }
    for role, fits in tests.items():
        reason = BY_NAME
        candidates = [c for c in free() if c.kind not in ("nothing", "other") and fits(c)]
        if role == "level":
            reason = BY_NAME if candidates else "one of its values means no incentive"
            candidates = sorted(candidates, key=lambda c: c.name.casefold() != "level") or _find_columns_with_control(
                free()
            )
        if role == "customer":  # the id of a person, not that of an order
            candidates.sort(key=lambda c: not PEOPLE.intersection(c.name_words))
        if role == "response":  # a 0/1 column is the likelier outcome
            candidates.sort(key=lambda c: c.distinct != 2)
        if role not in roles and candidates:
            roles[role], reasons[role] = candidates.pop(0).name, reason
        others[role] = tuple(c.name for c in candidates)
    # Costs are only suggested: a column taken for costs by mistake would change the plan.
    others["cost_column"] = () if "cost_column" in roles else tuple(c.name for c in free() if _may_be_cost(c))
    if "response" not in roles:
        numeric = [c for c in free() if not c.is_id and c.distinct >= 2 and c.has_values_between(0)]
        others["response"] = tuple(c.name for c in sorted(numeric, key=lambda c: not c.is_zero_or_one))
    if "level" not in roles:
        others["level"] = tuple(c.name for c in free() if not c.is_id and 2 <= c.distinct <= MAX_LEVELS)
    left_out = {column.name: _explain_exclusion(column, rows) for column in free()}
    return RoleGuesses(roles, others, {name: reason for name, reason in left_out.items() if reason}, reasons)


def _may_be_level(column: DraftColumn) -> bool:
    if not 2 <= column.distinct <= MAX_LEVELS or column.is_id:
        return False
    return column.name_matches_without_past(TREATMENT) and not column.name_matches(REDEEMED)


def _may_be_propensity(column: DraftColumn) -> bool:
    positive = column.has_values_between(np.nextafter(0, 1), 1)
    return positive and not OTHER_SCORES.intersection(column.name_words) and column.name_matches(PROPENSITY)


def _may_be_cost(column: DraftColumn) -> bool:
    return column.distinct > 2 and column.has_values_between(0) and column.name_matches_without_past(COST)


def _may_be_cluster(column: DraftColumn, rows: int) -> bool:
    """Test if a column may be the cluster, such as a household or a shop."""
    tokens = set(column.name_words) - NUMBERED
    if not 1 < column.distinct < rows:
        return False
    if "cluster" in tokens or (tokens and HOMES.issuperset(tokens)):
        return True
    return column.distinct >= MIN_CLUSTERS and bool(tokens) and PLACES.issuperset(tokens)


def _may_be_customer(column: DraftColumn, rows: int) -> bool:
    """Test if a column may hold customer ids."""
    tokens = set(column.name_words) - NUMBERED
    person = bool(PEOPLE.intersection(tokens) or not tokens)
    return column.is_id and (column.distinct == rows or (person and MIN_CLUSTERS <= column.distinct < rows))


def _find_columns_with_control(columns: Sequence[DraftColumn]) -> list[DraftColumn]:
    """Return the only text column with one value such as none or control, as a candidate for the level."""
    controlled = [c for c in columns if sum(map(means_no_incentive, c.words)) == 1]
    named = [c for c in controlled if {"segment", "group", "gruppe", "variant", "campaign"}.intersection(c.name_words)]
    return (controlled if len(controlled) == 1 else named) if len(named) <= 1 else []


def _explain_exclusion(column: DraftColumn, rows: int) -> str:
    """Return the reason why a column should not be a feature; empty if it may be one."""
    if column.is_id:
        return IDENTIFIER
    if column.is_row_number(rows):
        return "numbers the rows"
    if column.name_matches_without_past(OUTCOME) and column.values is not None:
        return "may have happened afterwards"
    if column.name_matches_without_past(TREATMENT) or any(CONTROL.search(word) for word in column.words):
        return "may say what was given"
    if _may_be_cost(column):
        return "may be what the row cost"
    return "may be a probability of what was given" if _may_be_propensity(column) else ""


def find_columns_fixed_by_level(table: pa.Table, roles: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """Return the columns that have one value for each level, each with the reason to exclude it."""
    if roles.get("level", "") not in table.column_names:
        return {}
    level = index_distinct_values(table.column(roles["level"]))
    levels, companions = int(level.max(initial=-1)) + 1, {}
    for name in names:
        code = index_distinct_values(table.column(name))
        values = int(code.max(initial=-1)) + 1
        if 2 <= values <= levels and len(np.unique(level.astype(np.int64) * values + code)) == levels:
            companions[name] = SET_WITH_LEVEL
    return companions


def find_columns_after_response(table: pa.Table, roles: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that are filled only in rows with a response, each with the reason to exclude it.

    They become known after the response, such as the size of an order, and would give it away to a model.
    """
    response = roles.get("response", "")
    if response not in table.column_names or find_feature_kind(table.column(response).type) != "number":
        return {}
    responded = convert_to_floats(table.column(response)) != 0
    share = float(responded.mean()) if len(responded) else 0.0
    if not 0 < share < 1:
        return {}
    consequences = {}
    for name in table.column_names:
        if name not in roles.values():
            filled = _mark_filled_rows(table.column(name))
            # Rows that are filled whatever the response all respond with the probability share^rows.
            if not filled[~responded].any() and filled.sum() * log(share) < log(CHANCE):
                consequences[name] = AFTER_RESPONSE
    return consequences


def _mark_filled_rows(column: pa.ChunkedArray) -> Array:
    """Return a mask (n,) of the rows that are not null, zero or empty."""
    kind = find_feature_kind(column.type)
    if kind == "number":
        values = convert_to_floats(column)
        return np.isfinite(values) & (values != 0)
    if kind == "text":
        import pyarrow.compute as pc

        return np.asarray(pc.fill_null(pc.not_equal(decode_dictionary(column), ""), False))
    return np.asarray(column.is_valid())
