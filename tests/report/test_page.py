"""The report page: complete, safe and well-formed, whatever the numbers are."""

import copy
import math
import re
import subprocess
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from largesse.report.charts.palette import DARK_LEVELS, LIGHT_LEVELS, choose_ink, contrast, spread_colours
from largesse.report.charts.scales import fit_axis
from largesse.report.formats import Units, choose_style, write_count, write_percent
from largesse.report.page import render

SECTIONS = ("answer", "frontier", "curve", "who", "money", "support", "method", "glossary")
VOID = {"meta", "br", "hr", "img", "link", "input"}
NAN = float("nan")


def estimate(middle, half):
    return {"estimate": middle, "low": middle - half, "high": middle + half}


def bell(bins, peak):
    return [int(400 * math.exp(-((i - peak) ** 2) / 3)) for i in range(bins)]


def binary_campaign():
    """Five levels paid on redemption, and a gain whose interval covers zero."""
    names, costs = ["none", "0.5", "1", "2", "3"], [0.0, 0.5, 1.0, 2.0, 3.0]
    values = [0.353, 0.585, 0.701, 0.755, 0.775]
    shares = [[0.05, 0.4, 0.3, 0.2, 0.05], [0.0, 0.3, 0.4, 0.2, 0.1], [0.1, 0.62, 0.28, 0.0, 0.0]]
    return {
        "title": "Come and get your result",
        "version": "0.1.0",
        "seed": 0,
        "fingerprint": "ab12cd34ef567890",
        "response": {"name": "got", "kind": "binary"},
        "unit": "USD",
        "levels": [{"name": n, "cost": c} for n, c in zip(names, costs, strict=True)],
        "on_redemption": True,
        "customers": 2825,
        "log": {"rows": 2825, "clusters": 119, "propensity": "estimated"},
        "budget": {"average": 0.97, "total": 2740.25},
        "answer": {
            "headline": "With 0.97 USD per customer, about 76.4 % of customers come: 2,159 in all, where 69.0 % came before.",
            "verdict": "Choosing who gets what gains little here: the plan brings 0.9 points more than the same level for "
            "everyone at the same spend, and the interval covers zero. A uniform level is simpler and may do as well.",
            "value": estimate(0.7642, 0.0281),
            "spend": estimate(0.951, 0.043),
            "promise": 0.7913,
            "price": 0.062,
            "versus": [
                {
                    "name": "everyone the same",
                    "detail": "62 % get '1', 38 % get '2'",
                    "value": estimate(0.755, 0.027),
                    "spend": estimate(0.968, 0.04),
                    "difference": estimate(0.0092, 0.0171),
                },
                {
                    "name": "what was done before",
                    "detail": "levels drawn by lot",
                    "value": estimate(0.6896, 0.0182),
                    "spend": estimate(0.934, 0.03),
                    "difference": estimate(0.0746, 0.0252),
                },
            ],
        },
        "frontier": [
            {
                "budget": b,
                "spend": b * 0.985,
                "value": 0.353 + 0.45 * (1 - math.exp(-2.5 * b)),
                "low": 0.353 + 0.45 * (1 - math.exp(-2.5 * b)) - 0.02 - 0.006 * b,
                "high": 0.353 + 0.45 * (1 - math.exp(-2.5 * b)) + 0.02 + 0.006 * b,
                "promise": 0.36 + 0.47 * (1 - math.exp(-2.5 * b)),
                "price": 1.12 * math.exp(-2.5 * b),
            }
            for b in [i * 2.4 / 19 for i in range(20)]
        ],
        "uniform": [
            {"name": n, "spend": c * v, "value": v, "low": v - 0.035, "high": v + 0.035}
            for n, c, v in zip(names, costs, values, strict=True)
        ],
        "curve": [
            {"name": n, "value": v, "low": v - 0.035, "high": v + 0.035, "model": v + 0.012, "raw": v - 0.018}
            | {"model_low": v - 0.02, "model_high": v + 0.04}
            for n, v in zip(names, values, strict=True)
        ],
        "who": [
            {
                "feature": "distance to the clinic",
                "explains": 0.42,
                "groups": [
                    {"label": f"{a} km", "customers": 812 + 70 * i, "shares": s, "average_cost": 0.8 + 0.2 * i}
                    for i, (a, s) in enumerate(zip(["under 1", "1 to 2.5", "over 2.5"], shares, strict=True))
                ],
            },
            {
                "feature": "block",
                "explains": 0.13,
                "groups": [
                    {"label": a, "customers": 940, "shares": s, "average_cost": 0.95}
                    for a, s in zip(["north", "south"], shares[1:], strict=True)
                ],
            },
        ],
        "money": [
            {
                "name": n,
                "customers": c,
                "share": c / 2825,
                "spend": s,
                "spend_share": s / 2686.0,
                "extra": e,
                "cost_per_extra": s / e if e else None,
            }
            for n, c, s, e in zip(
                names,
                [130, 1240, 930, 425, 100],
                [0, 430, 716, 1290, 250],
                [0.0, 402.1, 361.7, 190.2, 44.8],
                strict=True,
            )
        ],
        "overlap": [
            {"name": n, "rows": r, "effective": r * 0.91, "smallest": p, "verdict": w}
            for n, r, p, w in zip(
                names,
                [622, 601, 790, 512, 300],
                [0.11, 0.09, 0.14, 0.06, 0.031],
                ["fine", "fine", "fine", "fine", "careful"],
                strict=True,
            )
        ],
        "propensities": {"edges": [i / 10 for i in range(11)], "counts": [bell(10, p) for p in (2, 2, 3, 1.6, 0.7)]},
        "balance": [
            {"feature": "age", "before": 0.21, "after": 0.04},
            {"feature": "distance to the clinic", "before": 0.34, "after": 0.07},
            {"feature": "male", "before": 0.12, "after": 0.05},
            {"feature": "survey round 2004", "before": 0.27, "after": 0.13},
        ],
        "model": {
            "name": "Linear",
            "tried": [
                {"name": "Linear", "loss": 0.1903, "difference": 0.0, "se": 0.0, "chosen": True},
                {"name": "Boosting", "loss": 0.1921, "difference": 0.0018, "se": 0.0011, "chosen": False},
                {"name": "SIRE", "loss": 0.1911, "difference": 0.0008, "se": 0.0009, "chosen": False},
            ],
        },
        "warnings": [
            {
                "severity": "careful",
                "text": "Level '3' was given to only 300 rows: what the plan expects of it is uncertain.",
            },
            {"severity": "note", "text": "Propensities were estimated with a logistic regression on all features."},
        ],
    }


def amount_campaign():
    """Three levels, euros, more than a million customers, and a clear gain."""
    numbers = copy.deepcopy(binary_campaign())
    names, costs, values = ["nothing", "5 €", "10 €"], [0.0, 5.0, 10.0], [21.4, 24.9, 26.1]
    numbers |= {
        "title": "Spring reactivation",
        "response": {"name": "order value", "kind": "amount"},
        "unit": "€",
        "levels": [{"name": n, "cost": c} for n, c in zip(names, costs, strict=True)],
        "on_redemption": False,
        "customers": 1_200_000,
        "log": {"rows": 482_113, "clusters": None, "propensity": "given"},
        "budget": {"average": 1.7, "total": 2_040_000.0},
        "warnings": [],
        "uniform": [
            {"name": n, "spend": c, "value": v, "low": v - 0.3, "high": v + 0.3}
            for n, c, v in zip(names, costs, values, strict=True)
        ],
        "curve": [
            {
                "name": n,
                "value": v,
                "low": v - 0.3,
                "high": v + 0.3,
                "model": v + 0.1,
                "raw": v - 1.4,
                "model_low": None,
                "model_high": None,
            }
            for n, v in zip(names, values, strict=True)
        ],
        "frontier": [
            {
                "budget": i * 0.5,
                "spend": i * 0.5,
                "value": 21.4 + 5 * (1 - math.exp(-0.25 * i)),
                "low": 21.1 + 5 * (1 - math.exp(-0.25 * i)),
                "high": 21.7 + 5 * (1 - math.exp(-0.25 * i)),
                "promise": 21.4 + 5.4 * (1 - math.exp(-0.25 * i)),
                "price": 2.5 * math.exp(-0.25 * i),
            }
            for i in range(20)
        ],
        "who": [
            {
                "feature": "orders last year",
                "explains": 0.71,
                "groups": [
                    {"label": "0", "customers": 310_400, "shares": [0.1, 0.3, 0.6], "average_cost": 7.5},
                    {"label": "1 or 2", "customers": 402_811, "shares": [0.55, 0.4, 0.05], "average_cost": 2.5},
                    {"label": "3 or more", "customers": 486_789, "shares": [0.98, 0.02, 0.0], "average_cost": 0.1},
                ],
            }
        ],
        "money": [
            {"name": n, "customers": c, "share": c / 1.2e6, "spend": s, "spend_share": s / 2.03e6, "extra": e} | p
            for n, c, s, e, p in zip(
                names,
                [850_000, 294_000, 56_000],
                [0.0, 1_470_000.0, 560_000.0],
                [0.0, 2_910_400.0, 604_110.0],
                [{"cost_per_extra": None}, {"cost_per_extra": 0.505}, {"cost_per_extra": 0.927}],
                strict=True,
            )
        ],
        "overlap": [
            {"name": n, "rows": 160_000, "effective": 151_222.4, "smallest": 0.2, "verdict": "fine"} for n in names
        ],
        "propensities": {"edges": [i / 10 for i in range(11)], "counts": [bell(10, 3)] * 3},
        "balance": [{"feature": "orders last year", "before": 0.02, "after": 0.01}],
    }
    numbers["answer"] |= {
        "headline": "With €1.70 per customer, expect €24.13 of orders per customer: €29 million in all.",
        "verdict": "Targeting pays: it brings €1.02 more per customer than the same level for everyone.",
        "value": estimate(24.13, 0.28),
        "spend": estimate(1.69, 0.02),
        "promise": 24.41,
        "price": 1.06,
    }
    numbers["answer"]["versus"] = [
        {
            "name": "everyone the same",
            "detail": "66 % get 'nothing', 34 % get '5 €'",
            "value": estimate(23.11, 0.27),
            "spend": estimate(1.7, 0.0),
            "difference": estimate(1.02, 0.19),
        },
        {
            "name": "what was done before",
            "detail": "",
            "value": estimate(23.6, 0.1),
            "spend": estimate(4.98, 0.01),
            "difference": estimate(0.53, 0.31),
        },
    ]
    return numbers


def ugly_campaign():
    """Twelve levels with long and hostile names, missing numbers, huge amounts, tiny shares, many warnings."""
    numbers = copy.deepcopy(binary_campaign())
    names = [f"level {k} <script>alert({k})</script> & a very long description of the voucher" for k in range(12)]
    names[3], names[4], names[5] = "n", "Unterstützungsgutscheinversandkostenerstattungsprogramm", "x" * 120
    values = [0.00012 * (1 + k) for k in range(12)]
    values[6] = NAN
    numbers |= {
        "title": "An <b>ugly</b> campaign with a title that is much longer than any title has a right to be",
        "unit": "",
        "response": {"name": "clicked_on_<the>_promotional_link_within_thirty_days_of_receipt", "kind": "binary"},
        "levels": [{"name": n, "cost": None} for n in names],
        "customers": 1_200_000_000,
        "budget": {"average": NAN, "total": 1.2e9},
        "log": {"rows": 1_200_000_000, "clusters": None, "propensity": "estimated"},
        "uniform": [
            {"name": n, "spend": 0.4 * k, "value": v, "low": v - 0.0001, "high": v + 0.0001 if k != 2 else None}
            for k, (n, v) in enumerate(zip(names, values, strict=True))
        ],
        "curve": [
            {"name": n, "value": v, "low": v - 0.0001, "high": v + 0.0001, "model": None if k % 2 else v, "raw": NAN}
            | {"model_low": None if k % 2 else v, "model_high": NAN}
            for k, (n, v) in enumerate(zip(names, values, strict=True))
        ],
        "who": [
            {
                "feature": "<img src=x onerror=alert(1)> " * 3,
                "explains": None,
                "groups": [
                    {"label": "y" * 90, "customers": 812, "shares": [1 / 12] * 12, "average_cost": NAN},
                    {"label": "z", "customers": 3, "shares": [0.00012, 0.99988] + [0.0] * 10, "average_cost": 1.2e9},
                    {"label": "missing", "customers": None, "shares": [None] * 12, "average_cost": None},
                ],
            }
        ],
        "money": [
            {"name": n, "customers": 10**8, "share": 1 / 12, "spend": 1.2e9, "spend_share": 1 / 12, "extra": NAN}
            | {"cost_per_extra": float("inf") if k % 2 else 1234.5}
            for k, n in enumerate(names)
        ],
        "overlap": [
            {
                "name": n,
                "rows": 12 * k,
                "effective": None,
                "smallest": 0.00012,
                "verdict": ["fine", "careful", "no"][k % 3],
            }
            for k, n in enumerate(names)
        ],
        "propensities": {"edges": [i / 10 for i in range(11)], "counts": [[0] * 10] * 6 + [bell(10, 1)] * 6},
        "balance": [
            {"feature": "f" * 20 * (k + 1), "before": 0.2 * k, "after": NAN if k % 3 else 0.3} for k in range(12)
        ],
        "warnings": [
            {
                "severity": s,
                "text": f"Something is <i>wrong</i> with {s} number {k}; " + "and it takes long to say it " * k,
            }
            for k, s in enumerate(["note", "careful", "no", "careful", "no", "note", "careful"])
        ],
    }
    numbers["frontier"][4]["value"] = NAN
    numbers["frontier"][9]["low"] = None
    for row in numbers["frontier"]:
        for key in ("value", "low", "high", "promise", "price"):
            row[key] = row[key] and row[key] * 0.002
    numbers["answer"] |= {"value": estimate(NAN, 1.0), "promise": None, "price": NAN, "spend": estimate(1.2e9, 3e8)}
    numbers["answer"]["versus"][0] |= {"name": "w" * 80, "difference": {"estimate": 0.1, "low": None, "high": None}}
    return numbers


def empty_campaign():
    """Two levels and nothing else."""
    numbers = copy.deepcopy(binary_campaign())
    numbers["levels"] = numbers["levels"][:2]
    for key in ("uniform", "curve", "money", "overlap"):
        numbers[key] = numbers[key][:2]
    numbers["frontier"] = numbers["frontier"][7:8]
    for key in ("who", "balance", "warnings"):
        numbers[key] = []
    numbers["propensities"] = {"edges": [], "counts": []}
    numbers["answer"]["versus"] = []
    numbers["model"]["tried"] = []
    return numbers


SAMPLES = {"binary": binary_campaign, "amount": amount_campaign, "ugly": ugly_campaign, "empty": empty_campaign}


@pytest.fixture(params=SAMPLES)
def numbers(request):
    return SAMPLES[request.param]()


class Balance(HTMLParser):
    """Collects tags that do not close in order, ids, and every attribute that could load something."""

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.ids, self.loads, self.scripts = [], [], [], [], 0

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        self.scripts += tag == "script"
        self.note(tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self.note(tag, attrs)

    def note(self, tag, attrs):
        given = dict(attrs)
        self.ids += [given["id"]] if "id" in given else []
        self.loads += [
            key for key in given if key in ("src", "href", "xlink:href", "srcset", "data") or key[:2] == "on"
        ]
        self.loads += [tag] if tag in ("img", "link", "iframe", "object", "base") else []

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def parsed(page):
    parser = Balance()
    parser.feed(page)
    parser.close()
    return parser


def visible(page):
    """The words of a page, tooltips and labels included, without style and script."""
    return re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.S)


def test_tags_balance_and_nothing_is_loaded(numbers):
    found = parsed(render(numbers))
    assert not found.open
    assert not found.wrong
    assert not found.loads
    assert found.scripts == 1  # ours; none came in with a name


def test_every_section_is_there_once(numbers):
    ids = parsed(render(numbers)).ids
    assert [name for name in ids if name in SECTIONS] == list(SECTIONS)
    assert len(ids) == len(set(ids))


def test_every_figure_is_well_formed_xml_with_words_for_those_who_cannot_see_it(numbers):
    page = render(numbers)
    # nested drawings are inside others: cut at the outermost pair
    figures = re.findall(r"<svg class=\"(?:strip|frontier)\".*?</svg>(?!</svg>|<svg|<line|<circle)", page, flags=re.S)
    assert figures
    for figure in figures:
        root = ElementTree.fromstring(figure)
        assert root.get("aria-label")


def test_missing_numbers_are_dashes(numbers):
    page = visible(render(numbers))
    assert not re.search(r"\b(nan|inf|None|undefined|null)\b", page)
    assert "–" in page


def test_no_address_is_mentioned(numbers):
    assert not re.search(r"https?:|url\(|@import|xmlns", render(numbers))


def test_the_same_numbers_give_the_same_page(numbers):
    before = copy.deepcopy(numbers)
    assert render(numbers) == render(copy.deepcopy(numbers))
    assert repr(numbers) == repr(before)  # and are left as they were


def test_hostile_names_are_escaped_everywhere():
    hostile = "</title></svg></style><script>alert(1)</script>\"'><img src=x onerror=alert(1)>\x00\n"

    def poison(value):
        if isinstance(value, dict):
            return {k: v if k in ("kind", "severity", "verdict", "propensity") else poison(v) for k, v in value.items()}
        if isinstance(value, list):
            return [poison(item) for item in value]
        return hostile if isinstance(value, str) else value

    found = parsed(render(poison(binary_campaign())))
    assert found.scripts == 1
    assert not found.wrong
    assert not found.loads


@pytest.mark.parametrize("depth", range(2, 13))
def test_any_number_of_levels(depth):
    numbers = ugly_campaign()
    for key in ("levels", "uniform", "curve", "money", "overlap"):
        numbers[key] = numbers[key][:depth]
    numbers["propensities"]["counts"] = numbers["propensities"]["counts"][:depth]
    page = render(numbers)
    assert f"--level-{depth - 1}:" in page
    assert f"--level-{depth}:" not in page


def test_one_response_is_a_percentage_and_its_difference_percentage_points():
    page = visible(render(binary_campaign()))
    assert "76.4\u202f%" in page
    assert "+0.9\u202fpp" in page
    assert "−0.8 to +2.6\u202fpp" in page


def test_an_amount_is_plain_and_money_carries_its_sign():
    page = visible(render(amount_campaign()))
    assert "€1.69" in page
    assert "\u202fpp" not in page
    assert "€2.04\u202fmillion" in page


def test_urgent_warnings_come_first_and_say_so_in_words():
    page = visible(render(ugly_campaign()))
    top, rest = page.split('id="frontier"')
    assert top.count("Do not rely on this") == 2
    assert top.count("Careful:") == 3
    assert top.index("Do not rely on this") < top.index("Careful:")
    assert rest.count("Note:") == 2


def test_the_room_brings_in_no_heavy_library_of_its_own():
    code = "import sys, largesse; had = set(sys.modules); import largesse.report; print(*set(sys.modules) - had)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    roots = {name.split(".")[0] for name in told.stdout.split()}
    assert not roots & {"numpy", "pandas", "matplotlib", "jinja2", "sklearn"}


@pytest.mark.parametrize("stops", [LIGHT_LEVELS, DARK_LEVELS])
@pytest.mark.parametrize("depth", range(2, 13))
def test_colours_of_levels_are_ordered_by_lightness_and_carry_readable_text(stops, depth):
    colours = spread_colours(stops, depth)
    white = [contrast(colour, "#ffffff") for colour in colours]
    assert white == sorted(white, reverse=stops is DARK_LEVELS)
    assert min(contrast(colour, choose_ink(colour)) for colour in colours) >= 4.5


@pytest.mark.parametrize("values", [[], [None], [3.0], [0.0], [-1e-9, 1e9], [0.00012, 0.00013], [-5, -4.99]])
def test_axes_hold_their_numbers_and_have_few_round_ticks(values):
    for snug in (False, True):
        found = fit_axis(values, 5, snug)
        assert found.low < found.high
        assert 1 <= len(found.ticks) <= 9
        slack = 1e-6 * (found.high - found.low)
        assert all(found.low - slack <= v <= found.high + slack for v in values if v is not None)


def test_numbers_are_written_for_people():
    assert write_percent(0.00012) == "0.012\u202f%"
    assert write_percent(NAN) == "–"
    assert write_count(1_200_000) == "1,200,000"
    assert Units("amount", "€").cost(-0.5) == "−€0.50"
    assert Units("amount", "USD").cost(1.2e9) == "1.20\u202fbillion\u202fUSD"
    assert Units("binary", "").one == "1\u202funit of budget"
    assert choose_style([-0.001], 1.0).text(-0.001) == "0.0"
