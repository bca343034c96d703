import numpy as np
import pytest

from largesse.report.charts.scales import fit_axis, fit_linear_scale, fit_log_scale, thin_ticks

KAPPAS = [0.0, 1e-4, 1e-2, 1.0, 100.0]


@pytest.mark.parametrize("values", [[], [None], [3.0], [0.0], [-1e-9, 1e9], [0.00012, 0.00013], [-5, -4.99]])
def test_axes_hold_their_numbers_and_have_few_round_ticks(values: list[float | None]) -> None:
    for snug in (False, True):
        found = fit_axis(values, 5, snug)
        assert found.low < found.high
        assert 1 <= len(found.ticks) <= 9
        slack = 1e-6 * (found.high - found.low)
        assert all(found.low - slack <= v <= found.high + slack for v in values if v is not None)


@pytest.mark.parametrize("reach", [0.0011, 0.9, 1.1, 1.9, 2.1, 4.9, 5.1, 9.9, 18.5])
@pytest.mark.parametrize("target", [3, 4, 5])
def test_an_axis_that_ends_at_its_data_has_three_ticks_or_more(reach: float, target: int) -> None:
    for low in (-reach, 0.0, 0.31 * reach):
        assert len(fit_axis([low, reach], target, snug=True).ticks) >= 3


def test_a_zero_stands_apart_left_of_a_break() -> None:
    scale = fit_log_scale(KAPPAS)
    assert scale.gap is not None
    assert 0 < scale.place(0.0) < scale.gap < scale.place(1e-4)
    steps = np.diff([scale.place(kappa) for kappa in KAPPAS[1:]])
    assert steps == pytest.approx(steps[0])
    assert [words for _, words in scale.ticks] == ["0", "10⁻⁴", "0.01", "1", "100"]
    assert fit_log_scale(KAPPAS[1:]).gap is None


def test_ticks_are_at_least_three_or_thinned_until_they_do_not_touch() -> None:
    assert len(fit_linear_scale([-0.031, 0.04], 2, snug=True).ticks) >= 3
    assert len(fit_linear_scale([5.0, 5.0], 2).ticks) >= 3
    assert thin_ticks([0, 5, 10, 20, 30], [6] * 5, first=True) == [0, 2, 4]
    assert thin_ticks([0, 1], [50, 50]) == [0]
