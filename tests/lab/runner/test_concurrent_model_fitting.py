"""Concurrent fits: each becomes the model that it would have become alone, in fewer programs, and none waits for ever."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from largesse.records import Log
from largesse.response.linear import Linear
from largesse.response.networks import batched_training
from largesse.response.networks.batched_training import count_models_in_memory, stack_row_sets
from largesse.response.networks.sire import IRE, SIRE
from largesse.response.networks.training_runner_hook import train_networks
from largesse.response.networks.training_types import TrainingJob, TrainingLoop
from largesse.response.response_model import copy_unfitted
from largesse.worlds.paper_simulations import simulate
from largesse_lab.baselines import cfrnet as program
from largesse_lab.baselines.banditnet import BanditNet
from largesse_lab.baselines.cfrnet import CFRNET_CHECK_STEPS, CFRNET_NETWORK, CFRNET_TRAINING, CFRNet
from largesse_lab.baselines.ganite import GANITE
from largesse_lab.baselines.network_helpers import make_training_loop
from largesse_lab.runner import concurrent_model_fitting
from largesse_lab.runner.concurrent_model_fitting import fit_models_together, run_training_jobs
from support.models import flat, summing_job, summing_program

SMALL: dict[str, Any] = {"width": 8, "depth": 1, "epochs": 3, "batch": 64, "members": 1}


def logs(*sizes: int) -> list[Log]:
    return [simulate("averaged", n=n, seed=seed).log for seed, n in enumerate(sizes)]


def alone_and_together(models: list[Any], given: list[Log]) -> tuple[list[Any], list[Any]]:
    return [copy_unfitted(model).fit(log) for model, log in zip(models, given, strict=True)], fit_models_together(
        models, given
    )


def answers(model: Any, customers: Any) -> Any:
    """Curves of a response model, probabilities of a policy."""
    return model.probabilities_at_price(customers) if isinstance(model, BanditNet) else model.predict(customers)


def assert_alike(models: list[Any], given: list[Log]) -> None:
    alone, together = alone_and_together(models, given)
    customers = simulate("averaged", n=200, seed=9).features
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(answers(other, customers), answers(one, customers), atol=2e-4)
    assert not np.allclose(answers(together[0], customers), answers(together[1], customers), atol=1e-2)


# ---------------------------------------------------------------------------------------------- the same as alone


@pytest.mark.parametrize(
    ("make", "sizes"),
    [
        # Its row sets have the sizes of the levels: they differ, and are padded to one length.
        pytest.param(
            lambda: flat(
                CFRNet, alpha=[0.01], ipm="linear", depth=1, head_depth=1, width=8, head_width=6, steps=50, batch=30
            ),
            (300, 330),
            id="CFRNet",
        ),
        pytest.param(
            lambda: flat(GANITE, alpha=[1.0], beta=[0.5], width=6, steps=40, batch=32, discriminator_steps=1),
            (300, 300),
            id="GANITE",
        ),
        pytest.param(
            lambda: flat(BanditNet, budget=1.5, width=8, steps=100, translations=[0.3], search="retrain"),
            (300, 300),
            id="BanditNet",
        ),
    ],
)
def test_a_model_fitted_among_others_is_the_one_fitted_alone(make: Callable[[], Any], sizes: tuple[int, ...]) -> None:
    assert_alike([make(), make()], logs(*sizes))


def test_networks_of_several_kinds_and_seeds_meet_in_one_training_each(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"folds": 1, "start": "zero", **SMALL}
    models = [flat(IRE, kappa=0.0, seed=1, **small), flat(IRE, kappa=0.0, seed=2, **small), Linear()]
    models += [flat(SIRE, kappa=[3.0], head="minmax", **small) for _ in range(2)]
    calls = []
    inner = batched_training.train_in_groups
    monkeypatch.setattr(batched_training, "train_in_groups", lambda job: calls.append(len(job.seeds)) or inner(job))
    assert_alike(models, logs(300, 300, 300, 300, 300))
    assert calls[:6] == [1] * 6  # alone: one for each IRE, κ = 0 and 3 for each SIRE
    assert calls[6:] == [2, 2, 2]


def test_policies_of_one_log_for_several_budgets_are_trained_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def policies() -> list[BanditNet]:
        return [flat(BanditNet, budget=b, width=8, steps=100, translations=[0.0, 0.3]) for b in (0.5, 1.5)]

    first, second = logs(300, 300)
    calls = []
    join_jobs = concurrent_model_fitting.join_training_jobs
    monkeypatch.setattr(
        concurrent_model_fitting, "join_training_jobs", lambda jobs: calls.append(len(jobs)) or join_jobs(jobs)
    )
    together = fit_models_together([*policies(), *policies()], [first, first, second, second])
    assert calls == [2]  # one for each log
    customers = simulate("averaged", n=200, seed=9).features
    for policy, log, alone in zip(together, [first, first, second, second], [*policies(), *policies()], strict=True):
        np.testing.assert_allclose(answers(policy, customers), answers(alone.fit(log), customers), atol=2e-4)


def test_models_of_several_logs_see_the_draws_they_would_see_alone() -> None:
    """Each model adds up the rows that it draws; seven models of two logs and two seeds."""
    loop = TrainingLoop(2, 10, patience=100)
    program = summing_program(loop)
    jobs = [summing_job(program, n, models, loop) for n, models in ((10, 3), (300, 4))]
    for job, found in zip(jobs, run_training_jobs(jobs), strict=True):
        alone = train_networks(job)
        np.testing.assert_allclose(found.params["sum"], alone.params["sum"], rtol=1e-5)
        np.testing.assert_allclose(found.loss, alone.loss, rtol=1e-5)


def test_thousands_of_models_do_not_fit_into_memory_at_once() -> None:
    net = program.CFRNetArchitecture(50, 2, CFRNET_NETWORK, True)  # as published
    loop = make_training_loop(CFRNET_TRAINING.steps, CFRNET_CHECK_STEPS, CFRNET_TRAINING.patience)
    made = program.make_cfrnet_program(net, program.CFRNetPenalties("linear", True, 1e-4), CFRNET_TRAINING, loop)
    sets = (*stack_row_sets([np.arange(800)], np.ones(800)), *stack_row_sets([np.arange(300)], np.ones(300)))
    own = (*sets, np.zeros((1, 2), np.int32), np.ones((1, 2), np.float32), np.ones(1, np.float32))
    assert 20 < count_models_in_memory(TrainingJob(made, loop, (), own, np.zeros(1, int))) < 500


# ---------------------------------------------------------------------------------------------- meeting


class Counter:
    """A fit that hands in jobs of a kind with a number each, and may fail after the first."""

    def __init__(self, jobs: list[Any], fails: bool = False) -> None:
        self.jobs, self.fails, self.got = jobs, fails, []

    def fit(self, log: Log) -> None:  # noqa: ARG002
        for kind, number in self.jobs:
            self.got.append(train_networks(SimpleNamespace(program=kind, loop=None, number=number)))  # type: ignore[arg-type]
            if self.fails:
                raise ValueError(f"no {number}")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of numbers: each gets its number back, and how many were run with it; jobs of kind "bad" fail."""

    def run_numbers(jobs: list[Any]) -> list[Any]:
        if jobs[0].program == "bad":
            raise ValueError("together")
        return [(job.number, len(jobs)) for job in jobs]

    monkeypatch.setattr(concurrent_model_fitting, "run_training_jobs", run_numbers)


@pytest.mark.usefixtures("counted")
def test_jobs_of_one_kind_are_run_in_one_call_and_each_gets_its_own_result() -> None:
    fits = [Counter([("a", 1), ("b", 2)]), Counter([("a", 3)]), Counter([("c", 4), ("b", 5), ("b", 6)])]
    fit_models_together(fits, logs(50, 50, 50))
    assert [fit.got for fit in fits] == [[(1, 2), (2, 2)], [(3, 2)], [(4, 1), (5, 2), (6, 1)]]


@pytest.mark.usefixtures("counted")
def test_a_fit_that_fails_lets_the_others_end_and_is_raised() -> None:
    fits = [Counter([("a", 1), ("a", 2)]), Counter([("a", 7)], fails=True), Counter([("a", 3), ("a", 4)])]
    with pytest.raises(ValueError, match="no 7"):
        fit_models_together(fits, logs(50, 50, 50))
    assert fits[0].got == [(1, 3), (2, 2)]
    assert fits[2].got == [(3, 3), (4, 2)]


@pytest.mark.usefixtures("counted")
def test_an_error_of_a_joined_run_reaches_every_fit_of_it() -> None:
    fits = [Counter([("bad", 1)]), Counter([("bad", 2)]), Counter([("b", 3)])]
    with pytest.raises(ValueError, match="together"):
        fit_models_together(fits, logs(50, 50, 50))
    assert [fit.got for fit in fits] == [[], [], [(3, 1)]]
