from largesse_lab.experiments.hsic_kernels import ROWS, TABLE


def test_every_kernel_is_tried_with_both_models() -> None:
    kernels = ["linear", "linear", "rbf", "rbf", "rff", "rff"]
    made = {name: row.make().balance for name, row in ROWS.items()}
    assert [balance.kernel for balance in made.values()] == 2 * kernels
    assert all(balance.normalise is name.endswith(", normalised") for name, balance in made.items())
    assert not any(row.binary for row in ROWS.values())


def test_kernels_are_compared_on_the_same_repeats() -> None:
    records = [
        {"simulation": "averaged", "repeat": i, "row": row, "rmse": error + 0.01 * i, "value 3": 0.6}
        for row, error in (("CCPOvIRE, linear", 0.1), ("CCPOvIRE, RBF", 0.12))
        for i in range(2)
    ]
    text = TABLE.tabulate(records)
    assert "| CCPOvIRE, RBF | 0.1250 ± 0.0071 |" in text
    assert "0.1205 ± 0.1063 | 0.6000 ± 0.0004 |" in text
    (pair,) = {(p["first"], p["second"]) for p in TABLE.summarise(records)["pairs"]}
    assert pair == ("CCPOvIRE, linear", "CCPOvIRE, RBF")
