from largesse.report.charts.palette import DARK_PENS, DARK_SHEET, LIGHT_PENS, LIGHT_SHEET, contrast
from largesse.report.charts.pens import SHAPES, Pen


def test_pens_stand_out_on_their_paper() -> None:
    assert min(contrast(colour, LIGHT_SHEET["paper"]) for colour in LIGHT_PENS) >= 3
    assert min(contrast(colour, DARK_SHEET["paper"]) for colour in DARK_PENS) >= 3


def test_pens_differ_without_colour() -> None:
    looks = [(k % len(LIGHT_PENS), Pen(k).dash, SHAPES[k % len(SHAPES)]) for k in range(16)]
    assert len(set(looks)) == 16
    assert len({look[2] for look in looks[:8]}) == 8
    assert len({look[1] for look in looks}) > 1


def test_a_reference_has_no_mark() -> None:
    assert Pen(0, reference=True).draw_mark(1.0, 2.0) == ""
    assert "reference" in Pen(0, reference=True).draw_line([(0.0, 0.0), (1.0, 1.0)])
