import numpy as np

from largesse.records import Array
from largesse.worlds.thornton_log import read_thornton, thornton_levels


def column(name: str) -> Array:
    return read_thornton()[name].to_numpy()


def test_every_complete_row_is_there_without_nulls() -> None:
    table = read_thornton()
    assert table.num_rows == 2825
    assert table.column_names == ["customer", "village", "block", "age", "distance", "incentive", "got"]
    assert all(table[name].null_count == 0 for name in table.column_names)
    assert [str(kind) for kind in table.schema.types] == [
        "int64",
        "int64",
        "string",
        "double",
        "double",
        "string",
        "int64",
    ]
    assert len(set(column("customer"))) == 2825
    assert set(column("got")) == {0, 1}


def test_the_result_of_the_test_is_not_a_feature() -> None:
    assert not any("hiv" in name for name in read_thornton().column_names)


def test_shares_who_came_by_level() -> None:
    got, incentive = column("got"), column("incentive")
    shares = [got[incentive == name].mean() for name in thornton_levels().labels]
    # Five more people have no age; with them the shares would be .339 .677 .772 .863 .854.
    np.testing.assert_allclose(shares, [0.340, 0.677, 0.772, 0.862, 0.856], atol=5e-4)


def test_levels_cost_what_was_drawn_and_only_when_redeemed() -> None:
    levels = thornton_levels()
    assert levels.labels == ("none", "up to $0.50", "$0.50–1", "$1–2", "over $2")
    assert levels.on_redemption
    low, high = np.array([0, 0, 0.5, 1, 2]), np.array([0, 0.5, 1, 2, 3])
    costs = np.array(levels.costs)
    assert ((costs >= low) & (costs <= high)).all()
    np.testing.assert_array_equal(costs, np.round(costs, 2))
    assert set(column("incentive")) == set(levels.labels)


def test_blocks_are_runs_of_villages() -> None:
    village, block = column("village"), column("block")
    for name, first, last in [("villages 1–50", 1, 50), ("villages 51–99", 51, 99), ("villages 100–145", 100, 145)]:
        inside = (village >= first) & (village <= last)
        assert inside.any()
        np.testing.assert_array_equal(inside, block == name)
