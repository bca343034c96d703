from largesse_lab.bench.request import Request
from largesse_lab.experiments import CHAPTERS
from largesse_lab.experiments.pace_streams import LASTING, NAMES, measure, summarise, tabulate


def test_a_stream_is_paced_in_every_way_beside_the_offline_optimum() -> None:
    (record,) = measure(Request(seeds=(4, 4)))
    assert set(record["ways"]) == set(NAMES)
    for way in record["ways"].values():
        assert way["kept"]
        assert way["committed"] <= 1
    assert 0.9 < record["ways"]["pace"]["value"] < 1.02
    assert "| paced | 0 |" in tabulate([record])
    assert "lasting" not in record


def test_a_stream_that_pays_on_redemption_is_paced_by_both_rules() -> None:
    (record,) = measure(Request(seeds=(1, 1)))
    kept, lasting = record["ways"]["pace"], record["lasting"]["ways"]["pace"]
    assert lasting["kept"]
    assert kept["use"] < lasting["use"] <= 1
    assert (kept["refused"], lasting["redeemed"] > 0) == (0, True)
    summary = summarise([record])
    assert [kind["kind"] for kind in summary["kinds"]] == ["paid on redemption", LASTING]
    assert summary["lasting_value"] == lasting["value"]
    shown = tabulate([record])
    assert "| redemptions refused |" in shown
    assert "gain kept by reserving" in shown
    assert "of redemptions were refused, then." in CHAPTERS["pace_streams"].brief(summary)
