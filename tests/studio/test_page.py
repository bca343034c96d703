"""The studio's page in a real browser, against the real server."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from screenshots import open_studio

import largesse.report
import largesse.studio
from largesse.pipeline import plan
from support.browsers import PHONE, Watched, watch
from support.shops import shop_table

HOSTILE = '<img src=x onerror="window.hurt=1">'
WAIT = 90_000  # milliseconds that a step may take on a busy machine
PAGE = Path(largesse.studio.__file__).parent / "page"


@dataclass(frozen=True)
class Place:
    """A studio that is running, its folder, and a table outside of it."""

    address: str
    folder: Path
    table: Path

    @property
    def root(self) -> str:
        return self.address.split("?")[0]


@pytest.fixture(scope="module")
def place(ran: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A studio with one past run and one table in its folder; a column's name is HTML."""
    home = tmp_path_factory.mktemp("studio")
    folder = home / "runs"
    folder.mkdir()
    shutil.copytree(ran, folder / "winter")
    table = shop_table(300, seed=1)
    table = table.rename_columns([HOSTILE if name == "city" else name for name in table.column_names])
    pq.write_table(table, folder / "spring.parquet")
    pa_csv.write_csv(table, home / "coupons.csv")
    with open_studio(folder) as address:
        yield Place(address, folder, home / "coupons.csv")


@contextmanager
def visit(browser: Any, place: Place, **options: Any) -> Iterator[Watched]:
    """Open the studio in a browser."""
    with watch(browser, **options) as watched:
        watched.page.set_default_timeout(WAIT)
        watched.page.goto(place.address)
        yield watched


def check(watched: Watched, place: Place) -> None:
    """Nothing went wrong so far: no error, no request to elsewhere, no barrier, no HTML from the table."""
    assert watched.errors == []
    assert [url for url in watched.requests if not url.startswith((place.root, "blob:"))] == []
    assert watched.find_barriers() == []
    assert watched.page.evaluate("window.hurt") is None
    assert watched.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def fill_in(page: Any, budget: str = "2.5") -> None:
    """Fill in what the page asks for."""
    page.click("#use-costs")
    page.fill("#budget", budget)
    page.click("summary:has-text('More settings')")
    page.select_option("#model", "linear")
    page.wait_for_selector("text=The question")


def open_table(page: Any) -> None:
    """Pick the table of the folder."""
    page.click("button.file")
    page.wait_for_selector("#budget")


def test_the_whole_way_from_a_table_to_a_plan(browser: Any, place: Place, tmp_path: Path) -> None:
    with visit(browser, place) as watched:
        page = watched.page
        page.wait_for_selector(".drop")
        check(watched, place)
        page.set_input_files("#file", place.table)
        page.wait_for_selector("#budget")
        assert page.input_value("#role-level") == "coupon"
        assert page.input_value("#role-response") == "bought"
        assert page.locator("text=Still to say").is_visible()
        check(watched, place)
        fill_in(page)
        assert "€" not in page.inner_text(".question")
        page.fill("#unit", "€")
        assert "at most €2.50 per customer" in page.inner_text(".question")
        page.click("#go-on")
        page.wait_for_selector("#run")
        assert page.input_value("#run-name") == "coupons"
        check(watched, place)
        page.click("#run")
        page.wait_for_selector(".progress")
        check(watched, place)
        page.wait_for_selector("iframe.report")
        headline = page.frame_locator("iframe.report").locator("h1")
        headline.wait_for()
        assert page.url.endswith("#/run/coupons")
        assert "coupons" in page.title()
        check(watched, place)
        page.click("text=Files")
        page.wait_for_selector(".downloads")
        assert 'response = "bought"' in page.inner_text(".copyable pre >> nth=0")
        check(watched, place)
        page.click("text=What if")
        page.fill("#other-budget", "1.5")
        page.click("#plan")
        page.wait_for_selector(".beside-run")
        assert "€1.50" in page.inner_text(".beside-run")
        assert "For €1.00 less per customer, response" in page.inner_text(".result h2")
        check(watched, place)
        with page.expect_download() as waiting:
            page.click("text=Download as CSV")
        downloaded = pa_csv.read_csv(waiting.value.path())
        page.reload()
        page.wait_for_selector(".beside-run")  # the plan is still there, and what was asked
        assert page.input_value("#other-budget") == "1.5"
        page.click("#keep")
        page.click("text=Open coupons at 1.5")
        page.wait_for_selector("iframe.report")
        page.goto(place.root + "#/")
        for name in ("coupons", "coupons at 1.5"):
            page.get_by_label(f"Compare {name}", exact=True).check()
        page.click("#compare")
        page.wait_for_selector(".compare")
        assert page.inner_text(".compare").count("95 % interval") == 2
        check(watched, place)
    run = shutil.copytree(place.folder / "coupons", tmp_path / "coupons")
    plan(run, out=tmp_path / "plan.csv", budget=1.5)
    assert downloaded.equals(pa_csv.read_csv(tmp_path / "plan.csv"))


@pytest.mark.slow
def test_rules_of_a_what_if_are_those_of_the_campaign_file(browser: Any, place: Place, tmp_path: Path) -> None:
    with visit(browser, place) as watched:
        page = watched.page
        page.goto(place.root + "#/run/winter/what-if")
        page.fill("#other-budget", "1.5")
        for rule in page.locator(".rule summary").all():
            rule.click()
        page.fill("#caps-1", "30")
        page.fill("#shares-2", "5 %")
        page.click("#add-barred")
        page.select_option("#barred-value-0", "Lima")
        page.select_option("#barred-level-0", index=2)
        shown = page.locator("#barred-level-0 option").all_inner_texts()
        keys = page.locator("#barred-level-0 option").evaluate_all("all => all.map(one => one.value)")
        page.fill("#fixed", f"c00003, {shown[1]}\nc00004; {keys[0]}")
        check(watched, place)
        page.click("#plan")
        page.wait_for_selector(".beside-run")
        with page.expect_download() as waiting:
            page.click("text=Download as CSV")
        downloaded = pa_csv.read_csv(waiting.value.path())
        page.reload()
        page.wait_for_selector(".beside-run")
        assert page.input_value("#barred-value-0") == "Lima"
        assert page.input_value("#shares-2") == "5 %"
    run = shutil.copytree(place.folder / "winter", tmp_path / "winter")
    rules = f"""
[plan.caps]
{keys[1]} = 30
[plan.shares]
{keys[2]} = 0.05
[plan.barred.city]
Lima = ["{keys[2]}"]
[plan.fixed]
c00003 = "{keys[1]}"
c00004 = "{keys[0]}"
"""
    with (run / "campaign.toml").open("a", encoding="utf-8") as campaign:
        campaign.write(rules)
    plan(run, out=tmp_path / "plan.csv", budget=1.5)
    assert downloaded.equals(pa_csv.read_csv(tmp_path / "plan.csv"))


@pytest.mark.slow
def test_on_thornton_only_the_budget_needs_the_keyboard(browser: Any, place: Place) -> None:
    with visit(browser, place) as watched:
        page = watched.page
        page.set_default_timeout(10 * WAIT)
        page.click("#example")
        page.click("#use-costs")
        page.click("#budget")
        page.keyboard.type("1.11")
        page.click("#go-on")
        page.click("#run")
        page.frame_locator("iframe.report").locator("h1").wait_for()
        check(watched, place)


def test_a_bad_file_is_explained_and_another_can_follow(browser: Any, place: Place) -> None:
    with visit(browser, place) as watched:
        page = watched.page
        page.wait_for_selector(".drop")
        page.route("**/api/tables?*", lambda _: None)  # a table that takes for ever …
        page.set_input_files("#file", place.table)
        page.click("#stop-sending")  # … can be stopped
        page.wait_for_selector("#choose")
        page.unroute("**/api/tables?*")
        drop = """text => { const data = new DataTransfer();
          data.items.add(new File([text], "bad.parquet"));
          document.querySelector(".drop").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true })); }"""
        page.evaluate(drop, "no parquet at all")
        page.wait_for_selector("[role=alert]")
        assert "Parquet" in page.inner_text("[role=alert]")
        assert page.locator("#choose").is_visible()
        watched.errors[:] = [said for said in watched.errors if "400" not in said]  # the browser's own line
        check(watched, place)
        open_table(page)


def test_what_was_typed_survives_a_reload_and_the_way_back(browser: Any, place: Place) -> None:
    with visit(browser, place) as watched:
        page = watched.page
        open_table(page)
        fill_in(page, "1,70")
        page.fill("#unit", "kr")
        page.click("#redeemed")
        page.click("[aria-label='Move 10 up']")
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Move 10 up"
        page.wait_for_selector("#sort")  # costs are out of order now
        page.reload()
        page.wait_for_selector("#sort")
        assert page.input_value("#budget") == "1,70"
        assert page.input_value("#unit") == "kr"
        assert page.is_checked("#redeemed")
        page.click("#sort")
        page.wait_for_selector("text=The question")
        assert page.input_value("#cost-2") == "10"
        page.click("#go-on")
        page.wait_for_selector("#run")
        page.reload()
        page.wait_for_selector("#run")
        assert sum("/api/doctor" in url for url in watched.requests) == 1  # the answer is still there
        page.go_back()
        page.wait_for_selector("#budget")
        assert page.input_value("#budget") == "1,70"
        other = page.context.new_page()  # another tab, and the same table chosen again
        other.goto(page.url)
        other.wait_for_selector("#budget")
        assert other.input_value("#budget") == "1,70"
        other.evaluate("location.hash = '#/'")
        open_table(other)
        other.wait_for_selector("#budget")
        assert (other.url != page.url, other.input_value("#budget"), other.input_value("#cost-2")) == (
            True,
            "1,70",
            "10",
        )
        other.close()
        check(watched, place)


def test_a_run_can_be_cancelled(browser: Any, place: Place) -> None:
    with visit(browser, place) as watched:
        page = watched.page
        open_table(page)
        fill_in(page)
        page.select_option("#model", "auto")
        page.click("#go-on")
        page.wait_for_selector("#run")
        page.fill("#run-name", "stopped")
        page.click("#run")
        page.wait_for_selector(".progress")
        page.click("#cancel")
        page.wait_for_selector("text=The run was cancelled")
        check(watched, place)
        page.click("text=Back to the columns")
        page.wait_for_selector("#budget")
        assert page.input_value("#budget") == "2.5"
    assert not (place.folder / "stopped").exists()


def test_a_run_is_renamed_and_deleted_after_a_question(browser: Any, place: Place) -> None:
    shutil.copytree(place.folder / "winter", place.folder / "autumn")
    with visit(browser, place) as watched:
        page = watched.page
        page.get_by_role("button", name="Rename autumn").click()
        check(watched, place)
        page.fill("#new-name", "winter")
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog >> text=there already")  # the dialog stays, and says why
        watched.errors.clear()  # the browser's own line about the refusal
        page.fill("#new-name", "last autumn")
        page.click("#dialog-go")
        page.get_by_role("button", name="Delete last autumn").click()
        check(watched, place)
        page.click("#dialog-cancel")
        assert (place.folder / "last autumn").exists()
        page.get_by_role("button", name="Delete last autumn").click()
        page.click("#dialog-go")
        page.get_by_role("button", name="Delete last autumn").wait_for(state="detached")
        check(watched, place)
    assert not (place.folder / "last autumn").exists()
    assert (place.folder / "winter").exists()


def test_everything_can_be_done_by_keyboard(browser: Any, place: Place) -> None:
    def reach(page: Any, wanted: str, most: int = 60) -> None:
        """Press Tab until the element is focused; the focus is visible there."""
        for _ in range(most):
            page.keyboard.press("Tab")
            if page.evaluate("wanted => document.activeElement.matches(wanted)", wanted):
                style = "getComputedStyle(document.activeElement)"
                assert page.evaluate(f"{style}.outlineStyle") != "none"
                return
        raise AssertionError(f"{wanted} cannot be reached by Tab")

    with visit(browser, place) as watched:
        page = watched.page
        page.wait_for_selector("button.file")
        reach(page, "button.file")
        page.keyboard.press("Enter")
        page.wait_for_selector("#budget")
        reach(page, "#use-costs")
        page.keyboard.press("Enter")
        reach(page, "[id^=move-down]")
        page.keyboard.press("Space")
        assert page.evaluate("document.activeElement.id").startswith("move-down")  # it moved, and the focus with it
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Space")
        reach(page, "#budget")
        page.keyboard.type("2.5")
        reach(page, "#go-on")
        page.keyboard.press("Enter")
        page.wait_for_selector("#cancel, #run")
        assert page.evaluate("document.activeElement.id") == "view"  # the next Tab is in the new view
        reach(page, "#cancel, #run")


@pytest.mark.parametrize("options", [PHONE, {"color_scheme": "dark"}], ids=["phone", "dark"])
def test_every_state_fits_a_phone_and_the_dark(browser: Any, place: Place, options: dict[str, Any]) -> None:
    with visit(browser, place, **options) as watched:
        page = watched.page
        page.wait_for_selector(".run")
        check(watched, place)
        open_table(page)
        check(watched, place)
        fill_in(page)
        check(watched, place)
        for way, there in (("#/run/winter", "iframe"), ("#/run/winter/files", ".downloads")):
            page.goto(place.root + way)
            page.wait_for_selector(there)
            check(watched, place)
        page.goto(place.root + "#/compare/winter/winter")
        page.wait_for_selector(".compare")
        check(watched, place)
        page.goto(place.root + "#/run/no such run")
        page.wait_for_selector("[role=alert]")
        assert "no such run" in page.inner_text("[role=alert]")
        if options is not PHONE:
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 23, 29)"


def test_gaps_are_named_and_lead_to_their_fields(browser: Any, place: Place) -> None:
    with visit(browser, place) as watched:
        page = watched.page
        open_table(page)
        page.click("#go-on")
        assert page.evaluate("document.activeElement.id") == "cost-0"
        page.fill("#cost-0", "nothing")
        assert "“nothing” is not a number" in page.inner_text(".part-levels")
        page.select_option("#role-response", "age")
        page.wait_for_selector("text=It had this role before")
        assert page.input_value("#cost-0") == "nothing"
        page.select_option("#role-level", HOSTILE)
        page.wait_for_selector(".level-name:has-text('Lima')")
        page.wait_for_selector("#settle")  # cities have no order
        page.fill("#cost-1", "1")
        check(watched, place)


def test_numbers_are_read_and_written_as_people_do(browser: Any, place: Place) -> None:
    script = """async () => {
      const { readNumber, amount, plainAmount, duration, bytes } = await import("/static/words.js");
      return [["1.70", "1,70", "50 000", "1,250,000", "-3", ".5", "", "abc", "1.2.3"].map(readNumber),
              [amount(1.5, "€"), amount(-2, "$"), amount(3255, "USD"), amount(0.05, ""), plainAmount(5, "€"), plainAmount(1.7, "USD")],
              [duration(0.2), duration(90), duration(4000)], [bytes(812000), bytes(2e9), bytes(12)]];
    }"""
    with visit(browser, place) as watched:
        read, amounts, times, sizes = watched.page.evaluate(script)
    assert read == [1.7, 1.7, 50000, 1250000, -3, 0.5, None, None, None]
    assert amounts == ["€1.50", "−$2.00", "3,255\u202fUSD", "0.05", "€5", "1.70\u202fUSD"]
    assert times == ["1\u202fs", "2\u202fmin", "1\u202fh 7\u202fmin"]
    assert sizes == ["812\u202fkB", "2\u202fGB", "12\u202fbytes"]


def test_the_page_has_the_colours_of_the_report() -> None:
    def read(path: Path) -> list[dict[str, str]]:
        blocks = re.findall(r":root \{(.*?)\}", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        return [dict(re.findall(r"(--[\w-]+): ([^;]+);", block)) for block in blocks]

    report = read(Path(largesse.report.__file__).parent / "style.css")
    ours = read(PAGE / "style.css")
    light, dark = (block for block in report if "--paper" in block)
    assert {**ours[0], **light} == ours[0]
    assert {**ours[1], **dark} == ours[1]


def test_the_page_puts_text_in_as_text_and_keeps_to_itself() -> None:
    for path in PAGE.iterdir():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            path
        )
        assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?(https?:)?//""", text), path
        assert not re.search(r"""\son\w+=["']|\sstyle=["']""", text), path  # the policy forbids both
