import pytest

from largesse.report.charts.axes import fit_axis, thin_ticks


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


def test_ticks_are_thinned_until_they_do_not_touch() -> None:
    kept = thin_ticks([0, 5, 10, 20, 30], [6] * 5)
    assert kept == [0, 2, 4]
    assert thin_ticks([0, 1], [50, 50]) == [0]
