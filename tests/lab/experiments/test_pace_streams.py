from largesse_lab.bench.request import Request
from largesse_lab.experiments.pace_streams import NAMES, measure, tabulate


def test_a_stream_is_paced_in_every_way_beside_the_offline_optimum() -> None:
    (record,) = measure(Request(seeds=(4, 4)))
    assert set(record["ways"]) == set(NAMES)
    for way in record["ways"].values():
        assert way["kept"]
        assert way["committed"] <= 1
    assert 0.9 < record["ways"]["pace"]["value"] < 1.02
    assert "| paced | 0 |" in tabulate([record])
