import pytest

from largesse.report.charts.palette import DARK_LEVELS, LIGHT_LEVELS, choose_ink, contrast, spread_colours


@pytest.mark.parametrize("stops", [LIGHT_LEVELS, DARK_LEVELS])
@pytest.mark.parametrize("depth", range(2, 13))
def test_colours_of_levels_are_ordered_by_lightness_and_carry_readable_text(stops: tuple[str, ...], depth: int) -> None:
    colours = spread_colours(stops, depth)
    white = [contrast(colour, "#ffffff") for colour in colours]
    assert white == sorted(white, reverse=stops is DARK_LEVELS)
    assert min(contrast(colour, choose_ink(colour)) for colour in colours) >= 4.5
