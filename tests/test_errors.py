import pytest

import largesse.errors
from largesse.errors import InputError, Problem, fail, find_path_problems, join_some, plural, refuse, suggest


def test_refuse_returns_when_nothing_is_wrong_and_names_everything_otherwise() -> None:
    refuse("log", [])
    with pytest.raises(InputError) as caught:
        refuse("log", [Problem("it is empty", "write rows"), Problem("it has no columns")])
    assert str(caught.value) == "log: 2 things are wrong\n1. it is empty\n   → write rows\n2. it has no columns"


def test_fail_always_raises() -> None:
    with pytest.raises(InputError, match="log: it is empty\n   → write rows"):
        fail("log", Problem("it is empty", "write rows"))


def test_the_nearest_name_is_found_in_any_case() -> None:
    assert suggest("COUPN", ["Coupon", "age"]) == "did you mean 'Coupon'?"
    assert suggest("x", []) == "there are none"


def test_an_unknown_name_is_compared_with_a_limited_number_of_names(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    monkeypatch.setattr(largesse.errors, "_measure_similarity", lambda _, other: compared.append(other) or 0.0)
    assert f"({99_992:,} more)".replace(",", "") in suggest("x", (f"column {k}" for k in range(100_000)))
    assert len(compared) < 10_000


def test_long_lists_are_cut_and_numbers_agree_with_their_noun() -> None:
    assert join_some(range(10), limit=2) == "0, 1, … (8 more)"
    assert (plural(0, "row"), plural(1, "row"), plural(2000, "row")) == ("0 rows", "1 row", "2,000 rows")


def test_a_path_that_no_file_can_have_is_named() -> None:
    assert find_path_problems("log.csv", is_written=True) == []
    assert all(map(find_path_problems, ("a\0b", "a" * 300, "x/" * 3000)))
    assert find_path_problems("caf\udce9.csv") == []
    assert find_path_problems("caf\udce9.csv", is_written=True)
