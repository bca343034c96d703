"""Fits that meet: each becomes what it would have become alone, in fewer programs, and none waits for ever."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from largesse.errors import InputError
from largesse.policy.banditnet import BanditNet
from largesse.records import Log
from largesse.response.base import fresh
from largesse.response.baselines import cfr_program as program
from largesse.response.baselines.cfrnet import CFRNet
from largesse.response.baselines.ganite import GANITE
from largesse.response.linear import Linear
from largesse.response.networks import iterate as loop
from largesse.response.networks import train as training
from largesse.response.networks.sire import IRE, SIRE
from largesse.response.networks.together import fit_together, met
from largesse.worlds.simulation import simulate

SMALL: dict[str, Any] = {"width": 8, "depth": 1, "epochs": 6, "batch": 64, "members": 1}


def logs(*sizes: int) -> list[Log]:
    return [simulate("averaged", n=n, seed=seed).log for seed, n in enumerate(sizes)]


def alone_and_together(models: list[Any], given: list[Log]) -> tuple[list[Any], list[Any]]:
    return [fresh(model).fit(log) for model, log in zip(models, given, strict=True)], fit_together(models, given)


def assert_alike(models: list[Any], given: list[Log]) -> None:
    alone, together = alone_and_together(models, given)
    customers = simulate("averaged", n=200, seed=9).features
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(other.predict(customers), one.predict(customers), atol=2e-4)
    assert not np.allclose(together[0].predict(customers), together[1].predict(customers), atol=1e-2)


# ---------------------------------------------------------------------------------------------- the same as alone


@pytest.mark.parametrize(
    "make",
    [
        # Its row sets are of the levels' sizes: they differ, and are filled up to one length.
        lambda: CFRNet(
            alpha=[0.01, 1.0], ipm="linear", depth=1, head_depth=1, width=8, head_width=6, steps=50, batch=30
        ),
        lambda: GANITE(alpha=[0.0, 1.0], beta=[0.0, 0.5], width=6, steps=40, batch=32, turns=1),
        lambda: BanditNet(budget=1.5, width=8, steps=100, translations=[0.3], search="retrain"),
    ],
    ids=["CFRNet", "GANITE", "BanditNet"],
)
def test_a_model_fitted_among_others_is_the_one_fitted_alone(make: Callable[[], Any]) -> None:
    assert_alike([make(), make()], logs(400, 430))


def test_networks_of_several_kinds_and_seeds_meet_in_one_training_each(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"folds": 1, "start": None, **SMALL}
    models = [IRE(kappa=0.0, seed=1, **small), IRE(kappa=0.0, seed=2, **small), Linear()]
    models += [SIRE(kappa=[3.0], head="minmax", **small) for _ in range(2)]
    calls = []
    inner = training._train_rows
    monkeypatch.setattr(training, "_train_rows", lambda *a: calls.append(len(a[1])) or inner(*a))
    assert_alike(models, logs(400, 400, 300, 400, 400))
    assert calls[:6] == [1] * 6  # alone: one for each IRE, κ = 0 and 3 for each SIRE
    assert calls[6:] == [2, 2, 2]


def test_policies_of_one_log_for_several_budgets_are_trained_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def policies() -> list[BanditNet]:
        return [BanditNet(budget=b, width=8, steps=100, translations=[0.0, 0.3]) for b in (0.5, 1.5)]

    given = logs(400, 430)
    calls = []
    inner = loop._iterated
    monkeypatch.setattr(loop, "_iterated", lambda *a: calls.append(len(a[2])) or inner(*a))
    found = fit_together([*policies(), *policies()], [given[0], given[0], given[1], given[1]])
    assert calls == [2]  # one for each log
    customers = simulate("averaged", n=200, seed=9).features
    for one, log, alone in zip(found, [given[0]] * 2 + [given[1]] * 2, [*policies(), *policies()], strict=True):
        np.testing.assert_allclose(one.predict(customers), alone.fit(log).predict(customers), atol=2e-4)


def test_models_beyond_memory_are_run_in_groups_of_one_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each model adds up rows that chance names; seven models of two jobs and seeds, all at once and three at a time."""
    summing = loop.Parts(
        start=lambda rng: np.float32(rng.random()),
        luck=lambda rng, mine, steps: loop.drawn(rng, mine[1], steps, 2),
        step=lambda state, data, mine, places: state + data[0][mine[0][places]].sum() * mine[2],
        loss=lambda state, _data, _mine: -state,
        kept=lambda state: state,
        rows=(0,),
    )
    jobs = [
        loop._Job(
            (np.arange(n, dtype=np.float32) + n,),
            (*loop.row_sets([np.arange(n)] * models, np.ones(n)), np.arange(1, models + 1, dtype=np.float32)),
            np.arange(models) % 2,
        )
        for n, models in ((10, 3), (300, 4))
    ]
    short = loop.Loop(20, look=10, patience=100)
    alone = [loop._iterated(summing, short, [job])[0] for job in jobs]
    sizes = []
    inner = loop._run_group
    monkeypatch.setattr(loop, "_run_group", lambda *a: sizes.append(a[-1].shape[1]) or inner(*a))
    monkeypatch.setattr(loop, "_models_at_once", lambda *_: 3)
    parts = loop._iterated(summing, short, jobs)
    assert sizes == [3, 3, 3]  # the last one comes three times
    for one, other in zip(alone, parts, strict=True):
        np.testing.assert_allclose(other[0], one[0], rtol=1e-5)
        np.testing.assert_allclose(other[1], one[1], rtol=1e-5)


def test_thousands_of_models_do_not_fit_into_memory_at_once() -> None:
    net = program.Net(50, 2, 200, 3, 100, 3, "elu", 0.1, True)  # as published
    recipe = program.Recipe("linear", 0.1, 10.0, 10, True, 1e-3, 0.97, 1e-4, 100)
    sets = (*loop.row_sets([np.arange(800)], np.ones(800)), *loop.row_sets([np.arange(300)], np.ones(300)))
    mine = (*sets, np.zeros((1, 2), np.int32), np.ones((1, 2), np.float32), np.ones(1, np.float32))
    many = loop._models_at_once(program.parts(net, recipe), loop.Loop(3000, 25), mine, np.zeros(1), np.zeros(1))
    assert 20 < many < 500


# ---------------------------------------------------------------------------------------------- meeting


class Counter:
    """A fit that hands in numbers, and may fail."""

    def __init__(self, jobs: list[Any], fails: str | None = None) -> None:
        self.jobs, self.fails, self.got = jobs, fails, []

    def fit(self, log: Log) -> None:  # noqa: ARG002
        for kind, number in self.jobs:
            self.got.append(met(kind, number, self._run))
            if self.fails == "after":
                raise ValueError(f"no {number}")

    def _run(self, numbers: list[int]) -> list[Any]:
        if self.fails == "inside":
            raise ValueError("together")
        return [(number, len(numbers)) for number in numbers]


def test_jobs_of_one_kind_are_run_in_one_call_and_each_gets_its_own_result() -> None:
    fits = [Counter([("a", 1), ("b", 2)]), Counter([("a", 3)]), Counter([("c", 4), ("b", 5), ("b", 6)])]
    fit_together(fits, logs(50, 50, 50))
    assert [fit.got for fit in fits] == [[(1, 2), (2, 2)], [(3, 2)], [(4, 1), (5, 2), (6, 1)]]


def test_a_fit_that_fails_lets_the_others_end_and_is_told_of() -> None:
    fits = [Counter([("a", 1), ("a", 2)]), Counter([("a", 7)], fails="after"), Counter([("a", 3), ("a", 4)])]
    with pytest.raises(ValueError, match="no 7"):
        fit_together(fits, logs(50, 50, 50))
    assert fits[0].got == [(1, 3), (2, 2)]
    assert fits[2].got == [(3, 3), (4, 2)]


def test_what_goes_wrong_in_a_joined_run_reaches_every_fit_of_it() -> None:
    fits = [Counter([("a", 1)], fails="inside"), Counter([("a", 2)]), Counter([("b", 3)])]
    with pytest.raises(ValueError, match="together"):
        fit_together(fits, logs(50, 50, 50))
    assert [fit.got for fit in fits] == [[], [], [(3, 1)]]


def test_one_hears_how_many_have_ended() -> None:
    told: list[float] = []
    fit_together([Linear(), Linear()], logs(500, 200), tell=told.append)
    assert told == [0.5, 1.0]
    assert fit_together([], []) == []


def test_outside_a_meeting_a_job_is_run_at_once() -> None:
    assert met("a", 1, lambda jobs: [("run", *jobs)]) == ("run", 1)


def test_what_cannot_be_fitted_together_is_refused() -> None:
    with pytest.raises(InputError, match="2 models and 1 logs"):
        fit_together([Linear(), Linear()], logs(50))
    model = Linear()
    with pytest.raises(InputError, match="there twice"):
        fit_together([model, model], logs(50, 50))
