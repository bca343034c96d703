"""Command-line options that several commands share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from largesse import pipeline
from largesse.records import ROLES


def make_column_option(role: str) -> Any:
    """Return the command-line option that names the column of a role."""
    return typer.Option(help=f"{'Comma-separated:' if role == 'features' else 'Column with'} {ROLES[role]}.")


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a summary.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but warnings and errors.")]
Out = Annotated[Path | None, typer.Option("--out", help="Run folder to write.")]
RunFolder = Annotated[Path, typer.Argument(help="Run folder made by fit or run.")]

# Limits of spending.
Budget = Annotated[float | None, typer.Option("--budget", help="Budget: average cost per customer.")]
Total = Annotated[float | None, typer.Option("--total", help="Budget: cost of all customers together.")]
Confidence = Annotated[
    float | None,
    typer.Option(
        "--confidence",
        help="Probability (default 0.9) that the true cost is within the budget, where it depends on what customers do.",
    ),
]
Explore = Annotated[
    float | None,
    typer.Option("--explore", help="Explore as much as drawing the levels of this share of customers at random."),
]
ExploreFor = Annotated[
    str | None,
    typer.Option("--explore-for", help="Goal of exploring: evaluation or learning; random: no goal."),
]

# The machines that do the work.
Engine = Annotated[str | None, typer.Option(help="local (default), or spark for tables that one machine cannot hold.")]
Master = Annotated[
    str | None,
    typer.Option(
        help="Master of Spark, like local[4], spark://host:7077 or sc://host; default: as it is installed, or this machine."
    ),
]
PlanTo = Annotated[
    str | None,
    typer.Option(
        help="With Spark: the table (table:shop.plan) or address (s3a://shop/plan) to write the plan to, not the run folder."
    ),
]

# The columns of a log.
Propensity = Annotated[str | None, make_column_option("propensity")]
PropensityStrata = Annotated[str | None, make_column_option("propensity_strata")]
CostColumn = Annotated[str | None, make_column_option("cost_column")]
Logger = Annotated[str | None, make_column_option("logger")]
Cluster = Annotated[str | None, make_column_option("cluster")]
Weight = Annotated[str | None, make_column_option("weight")]
Customer = Annotated[str | None, make_column_option("customer")]
Features = Annotated[str | None, make_column_option("features")]

# Promises whose costs are paid later.
Promises = Annotated[
    str | None,
    typer.Option(
        help="kept (default): every promise can be redeemed. while_it_lasts: redemptions are refused once the budget is spent."
    ),
]
Most = Annotated[
    str | None,
    typer.Option(help="Maximum cost of each level, cheapest first, where the costs are not listed: 0,20,50."),
]


def select_given_options(options: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the named options that the user has set.

    >>> select_given_options({"level": "coupon", "weight": None, "out": "run"}, ["level", "weight"])
    {'level': 'coupon'}
    """
    return {name: options[name] for name in names if options[name] is not None}


def open_chosen_engine(engine: str | None, master: str | None, plan_to: str | None) -> AbstractContextManager[Any]:
    """Open the engine (local or Spark) that the options name."""
    options = {"engine": engine, "master": master, "plan_to": plan_to}
    chosen = {name: value for name, value in options.items() if value is not None}
    return pipeline.open_engine(**chosen) if chosen else nullcontext(pipeline.LOCAL_ENGINE)
