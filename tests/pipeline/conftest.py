"""A service's ledger over the shop's run folder."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from largesse.pacing import Pacer, agree, make_offers, make_population, open_ledger, plan_pace
from largesse.pipeline import plan
from largesse.policy import Policy

Serve = Callable[[list[str]], str]


@pytest.fixture
def serve(run_copy: Path, shop: Path, tmp_path: Path) -> Serve:
    """Books decisions for customers of the shop who come one after the other; returns the ledger's address."""

    def work(ids: list[str]) -> str:
        plan(run_copy, explore=0.3)
        policy, people = Policy.load(run_copy / "policy.largesse"), pq.read_table(shop / "customers.parquet")
        terms = agree(1000, "2999-12-31", starts="2026-01-01")
        paced = plan_pace(make_population(policy, people), terms, len(ids), at_random=policy.at_random)
        address = f"sqlite:///{tmp_path / 'spring.db'}"
        named = {**paced.as_dict(), "levels": list(policy.levels.labels), "unit": "€"}
        place = {name: at for at, name in enumerate(people["id"].to_pylist())}
        with open_ledger(address, terms, plan=named) as ledger:
            for at, name in enumerate(ids):
                offers = make_offers(policy, people.take([place[name]]), (name,))
                ledger.decide(f"r{at}", offers, Pacer(seed=at), policy="p1")
        return address

    return work
