"""Pages of hostile texts stay what they are, and the same seed gives the same bytes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.browsers import watch
from support.commands import run_command, working_folder
from support.examples import RNGS, examples
from support.pages import Page
from support.shops import CAMPAIGN, shop_table, write_shop

Rng = np.random.Generator
MARK = "zqx"  # in every hostile text, and nowhere else
PAYLOADS = (
    f"<script>alert('{MARK}')</script>", f"</script><script>alert('{MARK}')</script>",
    f"</title><img src={MARK} onerror=alert(1)>", f'"><svg onload=alert("{MARK}")>',
    f"' onmouseover='alert(1)' {MARK}='", f'" autofocus onfocus="alert(1)" {MARK}="',
    f"</style><style>*{{background:url({MARK})}}</style>", f"<!--{MARK}", f"-->{MARK}<b {MARK}>", f"]]><{MARK}/>",
    f"{{{{ {MARK} }}}}{{% for x in y %}}", f"&lt;script {MARK}&gt;", f"javascript:alert('{MARK}')",
    f"\u2028</svg><{MARK}>", f"</textarea></noscript></svg></math><{MARK} onclick=alert(1)>", f"\\u003c{MARK}\\u003e",
    f"${{{MARK}}}`{MARK}`",
)  # fmt: skip
HANDLERS = re.compile(r"^on[a-z]+$")
SHOWN = {
    "aria-label",
    "aria-valuetext",
    "title",
    "data-stops",  # JSON whose texts the script puts in place as text
    "data-names",
    "data-costs",
    "data-tip",
    "content",
    "alt",
    "data-readout",
    "data-label",
}  # attributes that hold words


@examples(1)
@given(st.permutations(PAYLOADS), RNGS)
def test_hostile_texts_stay_texts_in_pages(texts: list[str], rng: Rng) -> None:
    with working_folder() as folder:
        write_campaign(folder, texts, rng)
        for words in (["run", "c.toml", "--out", "r"], ["doctor", "c.toml", "--out", "d.html"]):
            code, shown = run_command(*words)
            assert code in (0, 20), shown
        for page in (folder / "r" / "report.html", folder / "d.html"):
            assert find_injection(page.read_text(encoding="utf-8")) == ""


@pytest.mark.slow
def test_hostile_texts_stay_texts_in_a_browser(browser: Any) -> None:
    with working_folder() as folder:
        write_campaign(folder, list(PAYLOADS), np.random.default_rng(0))
        assert run_command("run", "c.toml", "--out", "r")[0] in (0, 20)
        with watch(browser, (folder / "r" / "report.html").as_uri()) as watched:
            found = Page(watched.page.content())
    assert [name for _, name, _ in found.attributes if HANDLERS.match(name)] == []
    assert [tag for tag in found.tags if MARK in tag or tag == "img"] == []
    assert found.scripts == 1


def write_campaign(folder: Path, texts: list[str], rng: np.random.Generator) -> None:
    """Write a log whose columns, values, levels, title, unit and file name are hostile."""
    rows, K = 120, 3
    level, response, age, city, log_name = (
        text.replace("/", "∕") if i == 4 else text for i, text in enumerate(texts[:5])
    )
    names, cities = texts[5 : 5 + K], np.array(texts[8:11], dtype=object)
    codes = np.arange(rows) % K
    table = pa.table(
        {
            level: pa.array([names[k] for k in codes]),
            response: (rng.random(rows) < 0.2 + 0.2 * codes).astype(int),
            age: rng.normal(size=rows) + codes,
            city: pa.array(list(cities[rng.integers(0, 3, rows)])),
        }
    )
    pq.write_table(table, folder / f"{log_name}.parquet")

    def q(value: Any) -> str:  # JSON's texts are TOML's
        return json.dumps(value).replace("\\/", "/")

    lines = [f"title = {q(texts[11])}", f"unit = {q(texts[12])}", f"log = {q(log_name + '.parquet')}", "[columns]"]
    lines += [
        f"level = {q(level)}", f"response = {q(response)}", "[levels]", f"names = {q(names)}", "costs = [0, 5, 10]",
    ]  # fmt: skip
    lines += ["[plan]", "budget = 3", "[model]", 'name = "linear"']
    (folder / "c.toml").write_text("\n".join(lines), encoding="utf-8")


def find_injection(page: str) -> str:
    """Return what came in from the data, if anything: an element, an attribute, a script, a style or a comment."""
    found = Page(page)
    if MARK not in page:
        return "the page shows none of the texts"
    if odd := [tag for tag in found.tags if MARK in tag or tag in ("img", "iframe", "object", "embed", "base", "link")]:
        return f"elements {odd}"
    if found.scripts > 1:
        return f"{found.scripts} scripts"
    for tag, name, value in found.attributes:
        if HANDLERS.match(name) or MARK in name:
            return f"attribute {name} of {tag}"
        if MARK in value and (name in ("href", "src", "style", "id", "class") or name not in SHOWN):
            return f"{name}={value[:80]!r} of {tag}"
    if "innerHTML" in "".join(found.code) or "insertAdjacent" in "".join(found.code):
        return "the page's own script makes elements from text"
    if odd := [code for code in found.code if MARK in code]:
        return f"in code: {odd[0][:200]!r}"
    return ""


# -- determinism -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("model", ["linear", "additive", "boosting"])
def test_one_thread_and_two_write_the_same_bytes(tmp_path: Path, model: str) -> None:
    write_shop(tmp_path)
    pq.write_table(shop_table(200, seed=3), tmp_path / "log.parquet")
    (tmp_path / "campaign.toml").write_text(CAMPAIGN.replace('"linear"', f'"{model}"\nseed = 5'), encoding="utf-8")
    for threads in ("1", "2"):
        run_with(threads, tmp_path)
        (tmp_path / "run").rename(tmp_path / threads)
    one, two = (read_folder(tmp_path / threads) for threads in ("1", "2"))
    assert sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name)) == []


def run_with(threads: str, folder: Path) -> None:
    """Run the campaign with so many threads."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_NUM_THREADS")
    command = [sys.executable, "-m", "largesse", "run", "campaign.toml", "--out", "run"]
    env = {**os.environ, **dict.fromkeys(names, threads)}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 10), done.stderr


def read_folder(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
