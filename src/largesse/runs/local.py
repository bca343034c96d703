"""The straight line on one machine: read → fit → predict → allocate → evaluate → report.

A run folder holds `campaign.toml` (every default spelt out), `policy.largesse`, `plan.parquet`, `frontier.parquet`,
`evaluation.json`, `report.html`, and the numbers behind the report in `fit.json` and `plan.json`. Files are written to
a temporary name and renamed; the same seed gives the same bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from largesse.allocation import Constraints, allocate, expected_costs, explore_plan
from largesse.data import read_customers, read_log
from largesse.errors import InputError, Problem, nearest, refuse
from largesse.evaluation import ESTIMATORS, make_study
from largesse.files import atomic_file, atomic_folder
from largesse.policy import Policy
from largesse.records import Array, Choice, Customers, Finding, Log, Plan
from largesse.report import Heading, evaluation_part, fit_part, numbers, plan_part, render, who_gets_what
from largesse.response import (
    BART,
    GANITE,
    IRE,
    SIRE,
    Additive,
    Boosting,
    CFRNet,
    Choose,
    Linear,
    ResponseModel,
    Shrunk,
    Stack,
    Thresholds,
)
from largesse.runs.campaign import BUDGET_RULE, Campaign, read_campaign

Tell = Callable[[str, float], None]  # what is being done, and how much of it is done (0 to 1)


def silent(_what: str, _done: float) -> None:
    """Tell nobody."""


CAMPAIGN, POLICY, PLAN, FRONTIER = "campaign.toml", "policy.largesse", "plan.parquet", "frontier.parquet"
FIT_JSON, PLAN_JSON, EVALUATION_JSON, REPORT = "fit.json", "plan.json", "evaluation.json", "report.html"
MODELS: dict[str, Callable[[int], ResponseModel]] = {
    "auto": lambda seed: Stack(seed=seed),
    "linear": lambda seed: Linear(seed=seed),
    "boosting": lambda seed: Boosting(seed=seed),
    "sire": lambda seed: SIRE(seed=seed),
    "ire": lambda seed: IRE(seed=seed),
    "stack": lambda seed: Stack(seed=seed),
    "additive": lambda seed: Additive(seed=seed),
    "thresholds": lambda seed: Thresholds(seed=seed),
    "choose": lambda seed: Choose(seed=seed),
    "bart": lambda seed: Shrunk(model=BART(seed=seed), seed=seed),
    "cfrnet": lambda seed: CFRNet(way="shared", seed=seed),
    "ganite": lambda seed: GANITE(seed=seed),
}
TABLE_ENDINGS = (".parquet", ".pq", ".csv", ".feather", ".arrow")


def run(campaign: Campaign, out: str | Path, tell: Tell = silent, *, table: Any = None) -> dict[str, Any]:
    """Do the whole way and leave a run folder; return the numbers of the report.

    With `table`, the log is that table and is kept in the folder too, under the name the campaign gives it.
    """
    _check_model(campaign.model)
    _need_budget(campaign)
    tell("reading", 0.0)
    _keep_inputs(campaign, out, own=table is not None)
    log = read(campaign, table)
    customers = _customers_of(campaign, log)
    with atomic_folder(out) as folder:
        if table is not None:
            _write_table(folder / campaign.log, table)
        model = _fit_into(folder, campaign, log, tell)
        _plan_into(folder, campaign, model, log, customers, None, tell)
        _judge_into(folder, campaign, log, _average(campaign, len(customers)), tell)
        tell("writing the report", 0.0)
        return _report_into(folder, folder)


def fit(campaign: Campaign, out: str | Path, tell: Tell = silent) -> dict[str, Any]:
    """Learn from the log and leave a run folder with the policy, still without a price."""
    _check_model(campaign.model)
    tell("reading", 0.0)
    _keep_inputs(campaign, out)
    log = read(campaign)
    with atomic_folder(out) as folder:
        _fit_into(folder, campaign, log, tell)
        return _read_json(folder, FIT_JSON)


def plan(
    folder: str | Path,
    customers: str | None,
    *,
    budget: float | None = None,
    total: float | None = None,
    out: str | Path | None = None,
    tell: Tell = silent,
) -> dict[str, Any]:
    """Plan for a table of customers with the model of a run folder, at a budget."""
    folder = _run_folder(folder)
    _check_kind(out)
    campaign = _with_budget(read_campaign(folder), budget, total)
    policy = Policy.load(folder / POLICY)
    tell("reading", 0.0)
    found = _read_customers(campaign, customers, policy.model) if customers else _customers_of(campaign, read(campaign))
    _plan_into(folder, campaign, policy.model, None, found, out, tell)
    _write_text(folder / CAMPAIGN, campaign.text)
    return _read_json(folder, PLAN_JSON)


def judge(
    folder: str | Path,
    log: str | None = None,
    *,
    budget: float | None = None,
    estimator: str = "dr",
    tell: Tell = silent,
) -> dict[str, Any]:
    """Evaluate the campaign's model at a budget on a log, by default the campaign's own."""
    folder = _run_folder(folder)
    if estimator not in ESTIMATORS:
        refuse("evaluate", [Problem(f"estimator {estimator!r} is not known", nearest(estimator, ESTIMATORS))])
    campaign = read_campaign(folder)
    if budget is None:
        budget = campaign.budget if campaign.total is None else _planned_average(folder)
    campaign = _with_budget(campaign, budget, None)
    assert campaign.budget is not None
    tell("reading", 0.0)
    _judge_into(folder, campaign, read(campaign, log), campaign.budget, tell, estimator)
    return _read_json(folder, EVALUATION_JSON)


def report(folder: str | Path, out: str | Path | None = None) -> dict[str, Any]:
    """Make the report of a run folder from what its steps left there."""
    folder = _run_folder(folder)
    return _report_into(folder, folder, out)


# -- reading ----------------------------------------------------------------------------------------------------------


def read(campaign: Campaign, source: Any = None) -> Log:
    """Read the campaign's log (or another one with the same columns)."""
    roles: dict[str, Any] = dict(campaign.columns)
    return read_log(
        campaign.log if source is None else source, levels=campaign.levels, features=campaign.features, **roles
    )


def _customers_of(campaign: Campaign, log: Log) -> Customers:
    """Return the customers to plan for: their own table, or else the log's."""
    if campaign.customers is not None:
        return _read_customers(campaign, campaign.customers, None, log)
    if log.customer is not None and len(log.customer.unique()) < len(log):
        hint = 'name a table with one row per customer: customers = "customers.parquet"'
        refuse(
            "campaign", [Problem("the log has some customers more than once, so it cannot be planned for itself", hint)]
        )
    return Customers(log.features, log.customer, log.costs)


def _read_customers(campaign: Campaign, source: str, model: ResponseModel | None, log: Log | None = None) -> Customers:
    import pyarrow as pa

    from largesse.data import read_table

    table = read_table(source, what="customers")
    wanted = campaign.columns.get("customer")
    features = (
        list(log.features.column_names)
        if log is not None
        else list(model.encoder_.features if model is not None else ())
    )
    # A table of customers without the id column still has its rows' numbers.
    others = [name for name in table.column_names if name not in features]
    customer = wanted if wanted in table.column_names or _close(wanted, others) else None
    found = read_customers(table, levels=campaign.levels, customer=customer)
    missing = [name for name in features if name not in found.features.column_names]
    refuse(
        "customers",
        [Problem(f"the feature {name!r} is not in the table", nearest(name, table.column_names)) for name in missing],
    )
    assert isinstance(found.features, pa.Table)
    return found


def _close(name: str | None, others: list[str]) -> bool:
    """Whether a misspelt id column is there: then say so rather than number the rows."""
    return name is not None and nearest(name, others).startswith("did you mean")


def _keep_inputs(campaign: Campaign, out: str | Path, *, own: bool = False) -> None:
    """Refuse to replace a folder that holds what the campaign reads; `own`: the log is written anew with it."""
    target = Path(out).resolve()
    inputs = [campaign.customers, None if own else campaign.log]
    problems = [
        Problem(f"{path} lies in {target}, which would be replaced", "give another --out, or move the file")
        for path in inputs
        if path is not None and target in (Path(path).resolve(), *Path(path).resolve().parents) and target.is_dir()
    ]
    refuse("output", problems)


def _run_folder(folder: str | Path) -> Path:
    path = Path(folder)
    if not (path / CAMPAIGN).is_file():
        hint = "largesse fit or largesse run makes one"
        raise InputError("run folder", [Problem(f"{path} is not a run folder (it holds no {CAMPAIGN})", hint)])
    return path


def _read_json(folder: Path, name: str) -> dict[str, Any]:
    step, needed = {FIT_JSON: ("fit", "model"), PLAN_JSON: ("plan", "budget"), EVALUATION_JSON: ("evaluate", "value")}[
        name
    ]
    try:
        found = json.loads((folder / name).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(
            "run folder", [Problem(f"{folder} has no {name} yet", f"run: largesse {step} {folder} …")]
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(
            "run folder", [Problem(f"{folder / name} is damaged", f"run largesse {step} again")]
        ) from error
    if not isinstance(found, dict) or needed not in found:
        raise InputError("run folder", [Problem(f"{folder / name} is damaged", f"run largesse {step} again")])
    return found


# -- budgets ----------------------------------------------------------------------------------------------------------


def _with_budget(campaign: Campaign, budget: float | None, total: float | None) -> Campaign:
    for word, given in (("budget", budget), ("total", total)):
        if given is not None and not 0 <= given < math.inf:
            refuse("budget", [Problem(f"the {word} is {given}", BUDGET_RULE)])
    if budget is not None or total is not None:
        campaign = campaign.spending(budget=budget, total=total)
    _need_budget(campaign)
    return campaign


def _need_budget(campaign: Campaign) -> None:
    if campaign.budget is None and campaign.total is None:
        hint = "add budget = … (average per customer) or total = … under [plan], or give --budget"
        refuse("campaign", [Problem("it does not say what may be spent", hint)])


def _average(campaign: Campaign, customers: int) -> float:
    return campaign.budget if campaign.budget is not None else float(campaign.total or 0.0) / customers


def _planned_average(folder: Path) -> float | None:
    found = _read_json(folder, PLAN_JSON)["budget"]["average"]
    return None if found is None else float(found)


# -- the steps ----------------------------------------------------------------------------------------------------------


def _check_model(name: str) -> None:
    if name not in MODELS:
        refuse("model", [Problem(f"model {name!r} is not known", nearest(name, MODELS))])


def model_named(name: str, seed: int) -> ResponseModel:
    """Return an unfitted model by its name in a campaign file."""
    _check_model(name)
    return MODELS[name](seed)


def _fit_into(folder: Path, campaign: Campaign, log: Log, tell: Tell) -> ResponseModel:
    tell("learning the response", 0.0)
    model = model_named(campaign.model, campaign.seed).fit(log)
    kept = model.model_ if isinstance(model, Choose) else model
    _write_text(folder / CAMPAIGN, campaign.text)
    Policy(model, log.levels).save(folder / POLICY)
    _write_json(folder / FIT_JSON, fit_part(type(kept).__name__, tried(model), log, kept.mean_interval(log)))
    return kept


def tried(model: ResponseModel) -> tuple[Choice, ...]:
    """Return what a fitted model chose among, each named so that a reader of the report knows what it is."""
    if isinstance(model, Stack):
        inside = [choice for member in model.members_ for choice in tried(member[0])]
        return (*(replace(c, of="increments of the stack") for c in model.choices_), *inside)
    if isinstance(model, Additive):
        return tuple(replace(c, of="Additive: shapes of features") for c in model.choices_)
    if isinstance(model, Thresholds):
        return tuple(replace(c, of="Thresholds: lines held by") for c in getattr(model, "choices_", ()))
    if isinstance(model, CFRNet | GANITE):
        return tuple(replace(c, of=f"{type(model).__name__}: settings") for c in getattr(model, "choices_", ()))
    if not isinstance(model, SIRE | IRE):
        return getattr(model, "choices_", ())
    kind = type(model).__name__
    held = [replace(c, of=f"{kind}: own increments held by") for c in model.shrinkage_choices_]
    balance = [replace(c, name=f"κ = {c.name}", of=f"{kind}: balance") for c in model.kappa_choices_]
    began = [replace(c, of=f"{kind}: training starts at") for c in model.start_choices_]
    return tuple(choice for group in (began, held, balance) if len(group) > 1 for choice in group)


def _plan_into(
    folder: Path,
    campaign: Campaign,
    model: ResponseModel,
    log: Log | None,
    customers: Customers,
    out: str | Path | None,
    tell: Tell,
) -> None:
    tell("planning", 0.0)
    levels = log.levels if log is not None else Policy.load(folder / POLICY).levels
    curves = model.predict(customers)
    costs = expected_costs(levels, curves, customers.costs)
    made, chance = planned(campaign, customers, curves, costs)
    costs = np.broadcast_to(costs, curves.shape)
    spent = costs[np.arange(len(made)), made.levels]
    who = who_gets_what(
        customers.features.select(list(model.encoder_.features)), made.levels, spent, len(levels), campaign.seed
    )
    table = _plan_table(made, customers, curves, spent, levels.labels)
    if chance is not None:
        table = table.append_column("propensity", [chance])
    _write_table(Path(out) if out else folder / PLAN, table)
    Policy(model, levels, made.price, explore=campaign.planning.explore).save(folder / POLICY)
    part = plan_part(made, curves, costs, levels.labels, who)
    _write_json(folder / PLAN_JSON, {**part, "shadow": made.shadow} if made.shadow else part)


def planned(campaign: Campaign, customers: Customers, curves: Array, costs: Array) -> tuple[Plan, Array | None]:
    """Return the plan a campaign asks for, and each decision's probability (n,) where it explores."""
    how = campaign.planning
    if how.explore:
        made, drawn = explore_plan(
            curves, costs, campaign.budget, how.explore, total=campaign.total, seed=campaign.seed
        )
        return made, drawn.propensity
    rules = _constraints(campaign, customers, curves.shape[1]) if how.ruled else None
    return allocate(curves, costs, campaign.budget, total=campaign.total, constraints=rules, exact=how.exact), None


def _constraints(campaign: Campaign, customers: Customers, K: int) -> Constraints:
    """Return the campaign's rules for a table of customers."""
    how = campaign.planning
    table = customers.features
    named = [*([how.segment] if how.segment else []), *(how.eligible or ())]
    refuse(
        "customers",
        [
            Problem(f"the column {name!r}, which [plan] names, is not in the table", nearest(name, table.column_names))
            for name in named
            if name not in table.column_names
        ],
    )
    eligible = None
    if how.eligible:
        columns = [np.asarray(table.column(name).to_pylist(), dtype=object) for name in how.eligible]
        eligible = np.column_stack([np.array([bool(v) for v in column]) for column in columns])
        assert eligible.shape[1] == K  # the campaign names one column per level
    segment = np.array([str(v) for v in table.column(how.segment).to_pylist()]) if how.segment else None
    return Constraints(eligible, how.caps, how.shares, segment, how.segment_budgets, how.least_return)


def _plan_table(made: Plan, customers: Customers, curves: Array, spent: Array, labels: tuple[str, ...]) -> Any:
    import pyarrow as pa

    ids = customers.customer if customers.customer is not None else pa.array(np.arange(len(made)))
    names = pa.DictionaryArray.from_arrays(pa.array(made.levels.astype(np.int32)), pa.array(labels))
    return pa.table(
        {
            "customer": ids,
            "level": names.cast(pa.string()),
            "level_number": made.levels.astype(np.int32),
            "expected_response": curves[np.arange(len(made)), made.levels],
            "expected_cost": np.ascontiguousarray(spent),
        }
    )


def _judge_into(folder: Path, campaign: Campaign, log: Log, budget: float, tell: Tell, estimator: str = "dr") -> None:
    model, also = model_named(campaign.model, campaign.seed), _not_judged(campaign)
    study = make_study(log, model, budget, estimator=estimator, seed=campaign.seed, also=also, progress=tell)
    part = evaluation_part(log, study)
    _write_json(folder / EVALUATION_JSON, part)
    _write_table(folder / FRONTIER, _frontier_table(part["frontier"]))


def _not_judged(campaign: Campaign) -> tuple[Finding, ...]:
    """Return what a reader must know where the plan does more than the one that is judged."""
    how = campaign.planning
    if not how.ruled and not how.explore:
        return ()
    kept = "keeps to rules" if how.ruled else "leaves some levels to chance"
    text = (
        f"The plan {kept}; what is judged here is the best plan at the same budget without that. "
        "The plan itself will bring no more than this, and a little less as far as it is held back."
    )
    return (Finding("careful", text),)


def _frontier_table(points: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    names = {"low": "value_low", "high": "value_high"}
    return pa.table({names.get(key, key): [point[key] for point in points] for key in points[0]})


def _report_into(folder: Path, source: Path, out: str | Path | None = None) -> dict[str, Any]:
    campaign = read_campaign(source)
    fitted, planned, judged = (_read_json(source, name) for name in (FIT_JSON, PLAN_JSON, EVALUATION_JSON))
    if not _same_budget(planned["budget"]["average"], judged["budget"]):
        # Enough digits that the two budgets are the same afterwards.
        for_plan, for_evaluation = (f"{average:.10g}" for average in (planned["budget"]["average"], judged["budget"]))
        got = f"the plan is for a budget of {for_plan}, the evaluation for {for_evaluation}"
        refuse("run folder", [Problem(got, f"run: largesse evaluate {folder} --budget {for_plan}")])
    shown = numbers(Heading(campaign.title, campaign.unit, campaign.seed), fitted, planned, judged)
    _write_text(Path(out) if out else folder / REPORT, render(shown))
    return shown


def _same_budget(a: float | None, b: float | None) -> bool:
    return a == b or (a is not None and b is not None and math.isclose(a, b, rel_tol=1e-6))


# -- writing ------------------------------------------------------------------------------------------------------------


def _write_text(path: Path, text: str) -> None:
    with atomic_file(path) as part:
        part.write_text(text, encoding="utf-8")


def _write_json(path: Path, content: dict[str, Any]) -> None:
    _write_text(path, json.dumps(_jsonable(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _jsonable(value: Any) -> Any:
    """Missing numbers become null: JSON has no word for NaN."""
    if isinstance(value, dict):
        return {key: _jsonable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _write_table(path: Path, table: Any) -> None:
    import pyarrow.csv as csv
    import pyarrow.feather as feather
    import pyarrow.parquet as pq

    _check_kind(path)
    ways = {"csv": csv.write_csv, "feather": feather.write_feather, "arrow": feather.write_feather}
    with atomic_file(path) as part:
        ways.get(path.suffix.lower()[1:], pq.write_table)(table, str(part))


def _check_kind(path: str | Path | None) -> None:
    """Refuse to write a table under a name that promises another kind."""
    if path is not None and Path(path).suffix.lower() not in TABLE_ENDINGS:
        hint = f"known kinds: {', '.join(TABLE_ENDINGS)}"
        refuse("output", [Problem(f"{path} is of a kind that cannot be written", hint)])
