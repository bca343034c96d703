from pathlib import Path

from largesse_lab.runner.request import Request, check_part, find_unknown


def test_options_request_the_same_from_another_process() -> None:
    request = Request(["averaged"], ["CFRNet, shared", "SIRE"], 3, (1, 4), mix=0.5)
    assert request.as_options(Path("part.jsonl")) == [
        *("--simulations", "averaged", "--models", "CFRNet shared,SIRE", "--repeats", "3", "--mix", "0.5"),
        *("--part", "1/4", "--out", "part.jsonl"),
    ]
    drawn = Request(rows=["auto"], seeds=(5, 9), sizes=[500, 2000]).as_options(Path("x"))
    assert drawn[:-4] == ["--models", "auto", "--seeds", "5-9", "--rows", "500,2000"]
    assert Request().as_options(Path("x")) == ["--part", "0/1", "--out", "x"]


def test_parts_are_numbered_from_zero() -> None:
    assert check_part((0, 1)) == check_part((3, 4)) == []
    for part in ((1, 1), (-1, 2), (0, 0)):
        assert len(check_part(part)) == 1


def test_unknown_names_come_with_the_nearest_known_one() -> None:
    (problem,) = find_unknown("row", ["BARD", "CFRNet"], ["BART", "CFRNet"])
    assert "row 'BARD' is not known" in str(problem)
    assert "did you mean 'BART'?" in str(problem)
