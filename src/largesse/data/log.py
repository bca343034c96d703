"""From a table, or from arrays, to a checked `Log` or `Customers`. The rules are in `checks`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from largesse.data.checks import Check
from largesse.data.notation import parse_problems, read_notation
from largesse.data.paid import read_paid, settle_costs
from largesse.data.propensities import (
    Choices,
    impossible_shares,
    propensities_by_level,
    propensities_by_stratum,
    share_problems,
)
from largesse.data.read import check_names, read_table
from largesse.errors import InputError, Problem, count, fail, nearest, refuse, show, some
from largesse.levels import Levels
from largesse.records import ROLES, Array, Customers, Log, Roles

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = tuple(role for role in ROLES if role != "features")
CODED = (
    "level",
    "logger",
    "cluster",
    "customer",
    "propensity_strata",
)  # roles whose text is needed as it is, not dictionary-encoded


def read_log(source: Any, *, levels: Levels, **roles: Unpack[Roles]) -> Log:
    """Read and check a log of past decisions.

    Parameters
    ----------
    source
        A path, a glob, a folder, or a pandas, polars or pyarrow table.
    levels
        The levels in order, and their costs.
    level, response
        The columns with the level each customer got and with what happened.
    propensity, logger, cluster, weight, customer
        Optional columns: the probability with which the row's own level was chosen, in (0, 1]; the policy that chose it;
        the household, village or other group whose rows are not independent; the row's weight; the customer's id.
        `propensity` may also be a list with one probability for each level, where all customers had the same.
    propensity_strata
        Optional column, instead of `propensity`: levels were drawn within its strata, and a level's share there is its
        propensity.
    cost_column
        Optional column: what each row really cost, where that depends on what the customer did. No list of costs is needed
        then; budgets hold for expected costs.
    features
        The columns to learn from; by default every column that has no other role.

    parse
        How columns are written, where it is not plain: "decimal comma", "decimal point", "percent", "text", "day first",
        "month first", "excel date", or the number for each word: ``parse={"bought": {"yes": 1, "no": 0}}``.

    >>> log = read_log({"age": [20, 30, 40, 50], "coupon": [0, 5, 0, 5], "bought": [0, 1, 1, 0]},
    ...                level="coupon", response="bought", levels=Levels(costs=[0, 5]))
    >>> log
    Log(4 rows, 1 features, 2 levels)
    >>> log.level
    array([0, 1, 0, 1])
    """
    given: dict[str, Any] = {**roles}
    refuse("log", _argument_problems(levels, given))
    # Column names are text, also those that were numbers in a dataframe.
    named = {role: str(given[role]) for role in ROLES if role in COLUMNS and _is_name(given.get(role))}
    features = None if given.get("features") is None else [str(name) for name in given["features"]]
    parse = given.get("parse") or {}
    coded = {named[role] for role in CODED if role in named} - {*(features or ())}
    texts = {name: way for name, way in parse.items() if way == "text"}
    table = read_table(source, what="log", plain=coded, parse=texts)
    check_names(table, "log")
    reading = read_notation(table, parse, skip=coded)
    check = Check(reading.table, [*parse_problems(parse, table.column_names), *reading.problems], [*reading.notes])
    check.check_roles(named, levels, features)
    shares = None if _is_name(given.get("propensity")) else given.get("propensity")
    log = _read_roles(check, named, levels, features, shares)
    refuse("log", check.problems)
    known = np.isfinite(log.response)
    return log if known.all() else log.take(known)


def _is_name(given: Any) -> bool:
    """Whether a role is given as a column; propensities may also be a list, one for each level."""
    return given is not None and not isinstance(given, list | tuple) and np.ndim(given) == 0


def _read_roles(
    check: Check, named: dict[str, str], levels: Levels, features: list[str] | None, shares: Sequence[float] | None
) -> Log:
    """Read every column that is there, so that all that is wrong is named together."""
    known = set(check.table.column_names)
    there = {role: column for role, column in named.items() if column in known}
    rows = len(check.table)
    codes, outcome = np.zeros(rows, dtype=np.int64), np.zeros(rows)
    if "level" in there:
        codes, levels = check.read_level(there["level"], levels)
    if "response" in there:
        outcome = check.read_response(there["response"])
    levels = settle_costs(levels, "cost_column" in named, check)
    paid = read_paid(check, there["cost_column"], outcome) if "cost_column" in there else None
    policy = check.read_groups(there["logger"], "logger") if "logger" in there else None
    groups = check.read_groups(there["cluster"], "cluster") if "cluster" in there else None
    weights = check.read_weight(there["weight"]) if "weight" in there else None
    ids = check.read_ids(there["customer"], repeats="cluster" in named) if "customer" in there else None
    costs = check.read_costs(levels) if known.issuperset(levels.cost_columns or ()) else None
    listed = None if features is None else [name for name in features if name in known]
    taken = {column for role, column in named.items() if role != "propensity_strata"}
    used = check.select_features(listed, taken | {*(levels.cost_columns or ())})
    check.check_support(codes, outcome, levels, weights)
    propensity = _read_propensity(check, there, shares, codes, levels)
    if propensity is not None:
        name = f"the propensity {there['propensity']!r}" if "propensity" in there else "the propensity of the levels"
        choices = Choices(codes, propensity, levels.labels, weights, groups)
        if shares is not None and not check.problems:
            check.problems += impossible_shares(shares, choices)
        check.check_propensity(choices, name)
    name, notes = named["response"], tuple(check.notes)
    return Log(used, codes, outcome, levels, propensity, policy, groups, weights, ids, costs, notes, name, paid)


def _read_propensity(
    check: Check, there: dict[str, str], shares: Sequence[float] | None, codes: Array, levels: Levels
) -> Array | None:
    """Return the propensity (n,) of every row, however it is given; None if it is not."""
    if sum((shares is not None, "propensity" in there, "propensity_strata" in there)) > 1:
        check.add_problem("propensities are given in two ways", "name a column, or strata, or one for each level")
        return None
    if shares is not None:
        check.problems += (wrong := share_problems(shares, len(levels)))
        return None if wrong else propensities_by_level(shares, codes)
    if "propensity_strata" in there:
        strata = check.read_groups(there["propensity_strata"], "propensity_strata")
        return None if strata.min() < 0 else propensities_by_stratum(strata, codes, len(levels))
    return check.read_propensity(there["propensity"]) if "propensity" in there else None


def _argument_problems(levels: Any, roles: Mapping[str, Any]) -> list[Problem]:
    """Name the arguments that are unknown, missing or of the wrong type."""
    features = roles.get("features")
    problems = [
        Problem(f"there is no argument {role!r}", nearest(role, ("levels", "parse", *ROLES)))
        for role in roles
        if role not in (*ROLES, "parse")
    ]
    problems += [
        Problem(f"the {role} column is not named", f"give {role}= the name of the column with {ROLES[role]}")
        for role in ("level", "response")
        if roles.get(role) is None
    ]
    if not isinstance(levels, Levels):
        problems.append(Problem(f"levels is not Levels but {show(levels)}", "give levels=Levels(costs=[0, 5, 10])"))
    if roles.get("parse") is not None:
        problems += parse_problems(roles["parse"])
    problems += [
        Problem(f"{role} is {show(given)}", "give the name of one column")
        for role, given in roles.items()
        if role in COLUMNS and role != "propensity" and given is not None and not _is_name(given)
    ]
    if isinstance(features, str):
        problems.append(Problem(f"features is the text {features!r}", f"give a list: features=[{features!r}]"))
    elif features is not None and not isinstance(features, list | tuple) and np.ndim(features) != 1:
        problems.append(Problem(f"features is {show(features)}", "give a list of the names of columns"))
    return problems


def read_customers(
    source: Any,
    *,
    levels: Levels | None = None,
    customer: str | None = None,
    features: Sequence[str] | None = None,
    parse: Mapping[str, Any] | None = None,
) -> Customers:
    """Read and check a table of customers to plan for.

    Parameters
    ----------
    source
        A path, a glob, a folder, or a pandas, polars or pyarrow table.
    levels
        Needed when costs are per customer: names the columns that hold them.
    customer
        Column with the customer's id, each once.
    features
        Columns the model needs; by default every column but the id and the costs.
    parse
        How columns are written, as for `read_log`.
    """
    table = read_table(source, what="customers", plain=[str(customer)], parse=parse)
    return check_customers(table, levels=levels, customer=customer, features=features)


def check_customers(
    table: pa.Table,
    *,
    levels: Levels | None = None,
    customer: str | None = None,
    features: Sequence[str] | None = None,
) -> Customers:
    """Check a table of customers that `read_table` has read; the arguments are those of `read_customers`."""
    check_names(table, "customers")
    check = Check(table)
    cost_columns = (levels.cost_columns if levels is not None else None) or ()
    require_columns(table.column_names, [*([customer] if customer else []), *cost_columns, *(features or ())])
    ids = None if customer is None else check.read_ids(customer, repeats=False)
    costs = None if levels is None else check.read_costs(levels)
    left = [name for name in table.column_names if name != customer and name not in cost_columns]
    refuse("customers", check.problems)
    return Customers(table.select(list(features) if features is not None else left), ids, costs)


def require_columns(known: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse a table of customers that lacks a column."""
    missing = [name for name in wanted if name not in known]
    refuse("customers", [Problem(f"a column {name!r} is not in the table", nearest(name, known)) for name in missing])


def log_from_arrays(
    features: Any,
    level: Any,
    response: Any,
    *,
    levels: Levels | None = None,
    propensity: Any = None,
    weight: Any = None,
    cluster: Any = None,
    paid: Any = None,
) -> Log:
    """Make a checked log from arrays: features (n, p) or a dataframe, level (n,) in 0..K−1, response (n,).

    `paid` (n,) is what each row really cost, where costs are observed.

    >>> log_from_arrays(np.eye(4), [0, 1, 0, 1], [0, 1, 1, 0])
    Log(4 rows, 4 features, 2 levels)
    """
    import pyarrow as pa

    table = feature_table(features)
    rows, width = table.num_rows, table.num_columns
    extras = {"level": level, "response": response, "propensity": propensity, "weight": weight, "cluster": cluster}
    extras["cost_column"] = paid
    with _convertible("level, response or another column"):
        given = {f"_{role}": np.asarray(values) for role, values in extras.items() if values is not None}
    problems = [
        Problem(
            f"{_word(role[1:])} has shape {values.shape}, features have {count(rows, 'row')}", "give one value per row"
        )
        for role, values in given.items()
        if values.shape != (rows,)
    ]
    missing = [role for role in ("level", "response") if extras[role] is None]
    problems += [Problem(f"{_word(role)} is None", "give one value per row") for role in missing]
    if rows == 0 or width == 0:
        problems.append(Problem(f"features have shape ({rows}, {width})", "give at least one row and one column"))
    refuse("arrays", problems)
    for role, values in given.items():
        with _convertible(_word(role[1:])):
            table = table.append_column(role, pa.array(values))
    if levels is None:
        levels = Levels(costs=[float(k) for k in range(_highest(given["_level"]) + 1)])
    return read_log(
        table,
        levels=levels,
        features=table.column_names[:width],
        **{role: (f"_{role}" if f"_{role}" in given else None) for role in extras},  # type: ignore[arg-type]
    )


def _word(role: str) -> str:
    """Return the argument of `log_from_arrays` that holds a role."""
    return "paid" if role == "cost_column" else role


def feature_table(features: Any) -> pa.Table:
    """Return features as an Arrow table; columns of an array are called x0, x1 and so on."""
    import pyarrow as pa

    if isinstance(features, list | np.ndarray):
        with _convertible("features"):
            matrix = np.asarray(features)
        if matrix.ndim != 2:
            hint = "give a table or an array of shape (n, p)"
            fail("features", Problem(f"features have shape {matrix.shape}", hint))
        with _convertible("a column of the features"):
            features = pa.table({f"x{j}": np.ascontiguousarray(matrix[:, j]) for j in range(matrix.shape[1])})
    return read_table(features, what="features")


@contextmanager
def _convertible(what: str) -> Iterator[None]:
    """Turn NumPy's and Arrow's errors about ragged or mixed values into a sentence."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        hint = "give values of one type, and rows of one length"
        raise InputError("arrays", [Problem(f"{what} cannot be made an array: {error}", hint)]) from error


def _highest(level: Array) -> int:
    """Return the highest level of an array of level numbers; each level up to it needs a row of its own."""
    if not np.issubdtype(level.dtype, np.number) and level.dtype != bool:
        hint = "give numbers 0, 1, 2 …; for names or amounts: read_log with levels=Levels(…)"
        fail("arrays", Problem(f"level does not hold numbers: {some(list(level[:3]))}", hint))
    known = level[np.isfinite(level)]
    top = int(known.max()) if len(known) else 0
    if top >= len(level):
        hint = "levels are numbered 0, 1, 2 …; for amounts: read_log with levels=Levels(costs=…)"
        fail("arrays", Problem(f"level goes up to {top} in {count(len(level), 'row')}", hint))
    return max(top, 0)
