"""The public names take what people write first: names of levels, functions, rows of JSON."""

import numpy as np
import pytest

import largesse as lg
from largesse.errors import InputError
from largesse.worlds import simulate

SIM = simulate("averaged", n=800, seed=1)
NAMED = lg.Levels({f"{k} euro": k for k in range(5)})
LOG = lg.log_from_arrays(SIM.features, SIM.log.level, SIM.log.response, levels=NAMED)


def test_constraints_name_levels_where_levels_are_known() -> None:
    curves = lg.Linear().fit(LOG).predict(LOG)
    by_name = lg.allocate(curves, NAMED, 2.0, constraints=lg.Constraints(caps={"4 euro": 50}, shares={"1 euro": 0.3}))
    by_number = lg.allocate(curves, NAMED, 2.0, constraints=lg.Constraints(caps={4: 50}, shares={1: 0.3}))
    assert np.array_equal(by_name.levels, by_number.levels)
    assert (by_name.levels == 4).sum() <= 50
    result = lg.evaluate(LOG, lg.Linear(), budget=2.0, constraints=lg.Constraints(caps={"4 euro": 0, "3 euro": 0}))
    assert result.spend <= 2.0
    with pytest.raises(InputError) as error:
        lg.allocate(curves, NAMED, 2.0, constraints=lg.Constraints(caps={"4 euros": 50}))
    assert "4 euro" in error.value.problems[0].hint


def test_a_function_is_a_policy() -> None:
    pytest.importorskip("pandas")
    first = LOG.features.column_names[0]
    by_name = lg.evaluate(LOG, lambda table: np.where(table[first] > 0, "3 euro", "0 euro"))
    values = LOG.features.column(first).to_numpy()
    assert by_name.value == lg.evaluate(LOG, np.where(values > 0, 3, 0)).value
    with pytest.raises(InputError):
        lg.evaluate(LOG, lambda table: np.full(len(table), "5 euro"))


def test_a_policy_decides_for_rows_of_json() -> None:
    policy = lg.Policy(lg.Linear().fit(LOG), NAMED, price=0.05)
    rows = LOG.features.slice(0, 20).to_pylist()
    assert np.array_equal(policy.decide(rows), policy.decide(LOG)[:20])


def test_tables_of_plans_and_comparisons_hold_their_numbers() -> None:
    curves = lg.Linear().fit(LOG).predict(LOG)
    plan = lg.allocate(curves, NAMED, 2.0)
    table = plan.to_arrow()
    assert table.column("expected_response").to_numpy().mean() == pytest.approx(plan.value)
    assert table.column("expected_cost").to_numpy().mean() == pytest.approx(plan.spend)
    compared = lg.compare(LOG, np.full(800, 4), np.full(800, 0))
    assert compared.to_arrow().column("difference").to_pylist() == [compared.value.estimate, compared.spend.estimate]
    assert "spend" in compared._repr_html_()
