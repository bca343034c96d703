"""Small logs that many tests share."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support import examples  # noqa: F401  registers the profiles of hypothesis
from support.browsers import CHROMIUM, reach_chromium, run_chromium
from support.commands import Call, make_call
from support.models import leave_untrained
from support.postgres import Server, run_server, why_not
from support.shops import write_shop

# Tests compile many small networks: compiling quickly is worth more than fast code, and a program that another worker or an
# earlier run has compiled is not compiled again. With a limit of its size JAX locks the cache. Set before JAX is imported.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "xla"))
os.environ.setdefault("JAX_COMPILATION_CACHE_MAX_SIZE", str(1 << 28))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests with a Spark session, a browser or a PostgreSQL server in one process: a second one would cost more than it saves."""
    for item in items:
        names = getattr(item, "fixturenames", ())
        if "session" in names or ("engine" in names and "spark" in item.name):
            item.add_marker(pytest.mark.xdist_group("spark"))
        if "browser" in names:
            item.add_marker(pytest.mark.xdist_group("browser"))
        if "server" in names or ("address" in names and "postgres" in item.name):
            item.add_marker(pytest.mark.xdist_group("postgres"))


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    """One Spark session for all tests; without PySpark or Java they say why they are skipped."""
    from largesse.pipeline.spark import open_spark_session
    from support.spark import skip_without_spark

    skip_without_spark()
    with open_spark_session(master="local[2]") as started:
        yield started


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run the command line in this process: ``call("plan", "run")`` returns its exit code and output."""
    return make_call(monkeypatch, capsys)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with a log, a table of customers and a campaign file."""
    return write_shop(tmp_path, rows=300, customers=200)


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of the shop, beside its log and customers: for reading only."""
    from largesse.campaign import read_campaign
    from largesse.pipeline import run

    shop = write_shop(tmp_path_factory.mktemp("shop"), rows=300, customers=200)
    run(read_campaign(shop), shop / "run")
    return shop / "run"


@pytest.fixture
def run_copy(ran: Path, tmp_path: Path) -> Path:
    """A copy of the shop's run folder that a test may change; its campaign names the shop's own tables."""
    return shutil.copytree(ran, tmp_path / "run")


@pytest.fixture
def book_decisions(run_copy: Path, shop: Path, tmp_path: Path) -> Callable[[list[str]], str]:
    """Book decisions for customers of the shop who come one after the other; returns the ledger's address."""

    import pyarrow.parquet as pq

    from largesse.pipeline import plan
    from largesse.policy import Policy
    from largesse.serve import Pacer, make_offers, make_population, make_terms, open_ledger, plan_pace

    def work(ids: list[str]) -> str:
        plan(run_copy, explore=0.3)
        policy, people = Policy.load(run_copy / "policy.largesse"), pq.read_table(shop / "customers.parquet")
        terms = make_terms(1000, "2999-12-31", starts="2026-01-01")
        paced = plan_pace(make_population(policy, people), terms, len(ids), exploration_rate=policy.exploration_rate)
        address = f"sqlite:///{tmp_path / 'spring.db'}"
        named = {**paced.as_dict(), "levels": list(policy.levels.labels), "unit": "€"}
        place = {name: at for at, name in enumerate(people["id"].to_pylist())}
        with open_ledger(address, terms, plan=named) as ledger:
            for at, name in enumerate(ids):
                offers = make_offers(policy, people.take([place[name]]), (name,))
                ledger.decide(f"r{at}", offers, Pacer(seed=at), policy="p1")
        return address

    return work


@pytest.fixture(scope="session")
def chromium() -> Iterator[str]:
    """The address of the one Chromium of the run."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with run_chromium() as address:
        yield address


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    """The browser of the run."""
    with reach_chromium(chromium) as running:
        yield running


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The one PostgreSQL server of the run; tests that need it are skipped where there is none."""
    missing = why_not()
    if missing:
        pytest.skip(missing)
    with run_server() as running:
        yield running


@pytest.fixture
def programs() -> Iterator[list[int]]:
    """How many models each training program was given, in the order they ran; nothing is really trained."""
    with leave_untrained() as sizes:
        yield sizes
