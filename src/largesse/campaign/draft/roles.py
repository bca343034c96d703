"""Roles of the columns of an undescribed table, guessed from their names (English and German) and values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import TYPE_CHECKING

import numpy as np

from largesse.campaign.draft.levels import is_nothing, split_words
from largesse.data import as_floats, decode_dictionary, kind_of
from largesse.records import Array

if TYPE_CHECKING:
    import pyarrow as pa

MAX_LEVELS = 20
MIN_CLUSTERS = 10  # fewer stores or groups than this are a feature
NUMBERED = split_words("id ids no nr num number nummer key uuid guid code")
PEOPLE = split_words("customer user client member person account subscriber kunde kunden mitglied konto nutzer")
HOMES = split_words("cluster household households hh haushalt haushalte village dorf family familie school")
PLACES = split_words("store shop filiale branch group gruppe")
JOINED_ID = re.compile(
    r"^(customer|user|client|member|account|kunden?|person(en)?|haushalts?|household)(id|nr|no|nummer|number)$"
)
# Words of names that speak of the time before the levels were given, or of how often: not of the response.
EARLIER = split_words(
    "prev previous prior past last before history hist pre lag old avg mean median num number count anzahl since "
    "days months recency letzte letztes letzten vor vorher vorjahr bisher to"
)
GIVEN = re.compile(
    r"^level$|coupon|incentive|treat|discount|^offer$|voucher|bonus|subsid|^arm$|^action$|^dose$|promo|^match$"
    r"|gutschein|rabatt|anreiz|praemie|prämie|zuschuss|angebot"
)
HAPPENED = re.compile(
    r"^(response|reward|spend|spent|got|gave|y|r|out|voted?|visit(ed)?|tookup|sales?|sold|profit|churned|signup|opened|ordered"
    r"|kauf|gekauft|umsatz|umsätze|erlös|ertrag|bestellt|bestellung|antwort|reagiert|gewählt|eingelöst|abschluss|spende|besuch)$"
    r"|bought|convert|conversion|purchase|redeem|redempt|respond|respons|outcome|click|revenue|applied|gave|donat"
)
MONEY = re.compile(
    r"^(spend|spent|sales?|profit|margin|amount\w*|turnover|gmv|aov|basket|price|eur|euro|usd|gbp|chf|erlös|ertrag|betrag"
    r"|marge|deckungsbeitrag|spende)$|revenue|income|donat|umsatz|umsätze"
)
PAID = re.compile(r"^(costs?|paid|payout|reimbursed|kosten|bezahlt|gezahlt|ausgezahlt|erstattet)$")
COMPARED = re.compile(r"^(control|holdout|placebo|untreated|kontroll\w*)\b", re.IGNORECASE)  # values, not names
CHOSEN = re.compile(r"propensit|^pscore$|^prob(ability)?$|^ps$|^p$")
AFTER_RESPONSE = "is filled only where there was a response"
FILLED_BY_CHANCE = 1e-9  # probability below which a column is not filled only after responses by chance
WEIGHT = split_words("weight weights wt wgt gewicht gewichte gewichtung")


@dataclass(frozen=True)
class DraftColumn:
    """The kind and the values of one column."""

    name: str
    kind: str  # number, text, date, nothing or other
    distinct: int
    values: Array | None  # finite numbers only
    learnable: bool = True  # whether it can be a feature
    words: tuple[str, ...] = ()  # its values, where they are few and text

    @property
    def tokens(self) -> tuple[str, ...]:
        """The words of the name: of ``Kunden-Nr.`` and ``kundenNr`` they are kunden and nr."""
        apart = re.sub(r"(?<=[a-zäöüß0-9])(?=[A-ZÄÖÜ])", " ", self.name)
        return tuple(token for token in re.split(r"[\W_]+", apart.casefold()) if token)

    @property
    def is_id(self) -> bool:
        """Whether the name is that of an identifier, which says nothing about the next customer."""
        tokens = self.tokens
        if any(token in ("id", "ids", "uuid", "guid") or JOINED_ID.match(token) for token in tokens):
            return True
        return bool(tokens) and PEOPLE.union(HOMES, NUMBERED).issuperset(tokens) and not HOMES.issuperset(tokens)

    @property
    def yes_or_no(self) -> bool:
        """Whether the values are 0 and 1."""
        return self.values is not None and self.distinct == 2 and bool(((self.values == 0) | (self.values == 1)).all())


@dataclass(frozen=True)
class Guess:
    """Guessed columns by role, the alternatives, and the columns that are not offered as features."""

    roles: Mapping[str, str]  # level and response may be missing
    others: Mapping[str, tuple[str, ...]]  # role → further columns that could be it, the likeliest first
    left_out: Mapping[str, str] = field(default_factory=dict)  # column → why it is not offered as a feature


def guess_roles(columns: Sequence[DraftColumn], rows: int, known: Mapping[str, str] | None = None) -> Guess:
    """Guess the column of each role; `known` roles stand, and their columns are not guessed for others."""
    roles = dict(known or {})
    others: dict[str, tuple[str, ...]] = {}
    finders: dict[str, Callable[[DraftColumn], bool]] = {
        "propensity": _may_be_propensity,
        "weight": lambda c: bool(WEIGHT.intersection(c.tokens)) and c.values is not None and bool(c.values.min() >= 0),
        "cluster": lambda c: _may_be_cluster(c, rows),
        "logger": lambda c: 0 < c.distinct <= 100 and bool({"logger", "logging", "policy"}.intersection(c.tokens)),
        "customer": lambda c: c.is_id and c.distinct == rows,
        "level": lambda c: 2 <= c.distinct <= MAX_LEVELS and _says(c, GIVEN) and not c.is_id,
        "response": lambda c: c.values is not None and c.distinct >= 2 and _says(c, HAPPENED) and not c.is_id,
    }
    for role, fits in finders.items():
        found = [c for c in columns if c.kind not in ("nothing", "other") and c.name not in roles.values() and fits(c)]
        if role == "level":
            found = sorted(found, key=lambda c: c.name.casefold() != "level") or _with_control(columns, roles)
        if role == "response":  # a 0/1 column is the likelier outcome
            found.sort(key=lambda c: c.distinct != 2)
        if role not in roles and found:
            roles[role] = found.pop(0).name
        others[role] = tuple(c.name for c in found)
    # What a row cost is only ever asked about: taken for costs by mistake, it would change what is planned.
    free = [c for c in columns if c.name not in roles.values()]
    others["cost_column"] = () if "cost_column" in roles else tuple(c.name for c in free if _may_be_cost(c))
    if "response" not in roles:
        others["response"] = _could_respond(columns, roles)
    if "level" not in roles:
        free = [c for c in columns if c.name not in roles.values() and not c.is_id]
        others["level"] = tuple(c.name for c in free if 2 <= c.distinct <= MAX_LEVELS)
    return Guess(roles, others, _leave_out(columns, roles))


def sounds_like_money(column: DraftColumn) -> bool:
    """Whether the name of a response is that of an amount of money, and its values can be one."""
    return column.values is not None and column.distinct > 2 and any(MONEY.search(token) for token in column.tokens)


def _says(column: DraftColumn, words: re.Pattern[str]) -> bool:
    """Whether the name has one of the words, and none that speaks of earlier times."""
    tokens = column.tokens
    past = EARLIER.intersection(tokens) or any(re.fullmatch(r"(19|20)\d\d|\d+[dmwy]", token) for token in tokens)
    return not past and any(words.search(token) for token in (*tokens, "".join(tokens)))


def _may_be_propensity(column: DraftColumn) -> bool:
    if column.values is None or not (column.values.min() > 0 and column.values.max() <= 1):
        return False
    of_else = {"buy", "churn", "purchase", "kauf", "to", "click", "response"}  # a score of something else
    tokens = column.tokens
    return not of_else.intersection(tokens) and any(CHOSEN.search(token) for token in (*tokens, "".join(tokens)))


def _may_be_cost(column: DraftColumn) -> bool:
    values = column.values
    return values is not None and column.distinct > 2 and float(values.min()) >= 0 and _says(column, PAID)


def _may_be_cluster(column: DraftColumn, rows: int) -> bool:
    """Whether rows that share a value of the column may not be independent: households, villages, repeated customers."""
    tokens = set(column.tokens) - NUMBERED
    if not 1 < column.distinct < rows:
        return False
    if "cluster" in tokens or (tokens and HOMES.issuperset(tokens)):
        return True
    return (bool(tokens) and PLACES.issuperset(tokens) and column.distinct >= MIN_CLUSTERS) or (
        column.is_id and bool(PEOPLE.intersection(tokens) or not tokens) and column.distinct >= MIN_CLUSTERS
    )


def _with_control(columns: Sequence[DraftColumn], roles: Mapping[str, str]) -> list[DraftColumn]:
    """Return the only text column with a value like none, control or No E-Mail, or nothing if there are several."""
    found = [c for c in columns if c.name not in roles.values() and sum(map(is_nothing, c.words)) == 1]
    named = [c for c in found if {"segment", "group", "gruppe", "variant", "campaign"}.intersection(c.tokens)]
    return (found if len(found) == 1 else named) if len(named) <= 1 else []


def _could_respond(columns: Sequence[DraftColumn], roles: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns that could be a response by their values, those of 0 and 1 first."""
    free = [c for c in columns if c.name not in roles.values() and not c.is_id and c.values is not None]
    fit = [c for c in free if c.distinct >= 2 and c.values is not None and c.values.min() >= 0]
    return tuple(c.name for c in sorted(fit, key=lambda c: not c.yes_or_no))


def _leave_out(columns: Sequence[DraftColumn], roles: Mapping[str, str]) -> dict[str, str]:
    """Return the columns without a role that should not be learnt from, each with the reason."""
    found = {}
    for column in columns:
        if column.name in roles.values():
            continue
        if column.is_id:
            found[column.name] = "an identifier"
        elif _says(column, HAPPENED) and column.values is not None:
            found[column.name] = "may have happened afterwards"
        elif _says(column, GIVEN) or any(COMPARED.search(word) for word in column.words):
            found[column.name] = "may say what was given"
        elif _may_be_cost(column):
            found[column.name] = "may be what the row cost"
        elif _may_be_propensity(column):
            found[column.name] = "may be a probability of what was given"
    return found


def find_consequences(table: pa.Table, roles: Mapping[str, str]) -> dict[str, str]:
    """Return the columns without a role that are filled only in rows that responded, each with the reason.

    They become known after the response, such as the size of an order, and would give it away to a model.
    """
    response = roles.get("response", "")
    if response not in table.column_names or kind_of(table.column(response).type) != "number":
        return {}
    responded = as_floats(table.column(response)) != 0
    share = float(responded.mean()) if len(responded) else 0.0
    if not 0 < share < 1:
        return {}
    found = {}
    for name in set(table.column_names).difference(roles.values()):
        filled = _find_filled(table.column(name))
        # Rows that are filled whatever the response all respond with the probability share^rows.
        if not filled[~responded].any() and filled.sum() * log(share) < log(FILLED_BY_CHANCE):
            found[name] = AFTER_RESPONSE
    return {name: found[name] for name in table.column_names if name in found}


def _find_filled(column: pa.ChunkedArray) -> Array:
    """Return which rows (n,) hold more than nothing: no null, no zero, no empty text."""
    kind = kind_of(column.type)
    if kind == "number":
        values = as_floats(column)
        return np.isfinite(values) & (values != 0)
    if kind == "text":
        import pyarrow.compute as pc

        return np.asarray(pc.fill_null(pc.not_equal(decode_dictionary(column), ""), False))
    return np.asarray(column.is_valid())
