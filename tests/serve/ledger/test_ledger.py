"""A ledger keeps every decision once, and never promises more than it has; sums over any history: properties/test_ledgers.py."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from largesse.errors import InputError, LedgerError
from largesse.serve import ChosenLevels, DecisionRequest, Ledger, LedgerDecisions, LedgerTerms, open_ledger
from largesse.serve.ledger import amounts_and_times
from largesse.serve.ledger.amounts_and_times import SteadyClock, now_micros
from support.ledgers import DAY, START, Dearest, fixed_terms, make_offers


@pytest.fixture
def ledger(address: str) -> Iterator[Ledger]:
    with open_ledger(address, fixed_terms()) as opened:
        yield opened


@pytest.fixture
def lasting(address: str) -> Iterator[Ledger]:
    """A ledger whose promises hold while the budget lasts."""
    with open_ledger(address, fixed_terms(promises="while_it_lasts")) as opened:
        yield opened


def decide(ledger: Ledger, request: str, customers: str, now: int = START, **given: Any) -> list[int]:
    levels: list[int] = ledger.decide(
        request, make_offers(list(customers)), Dearest(), now=now, **given
    ).levels.tolist()
    return levels


# -- decisions -----------------------------------------------------------------------------------------------------------


def test_requests_in_one_transaction_are_decided_one_after_the_other(ledger: Ledger) -> None:
    names, customers = ["1", "2", "1", "1", "", "3"], ["abcdefghi", "ab", "abcdefghi", "x", "y", "z"]
    requests = [DecisionRequest(name, make_offers(list(who)), "v1") for name, who in zip(names, customers, strict=True)]
    results = ledger.decide_together(requests, Dearest(), now=START)
    first, second, again, last = (result for result in results if isinstance(result, LedgerDecisions))
    assert first.levels.tolist() == again.levels.tolist() == [2] * 9
    assert (first.repeated, again.repeated) == (False, True)
    assert (second.levels.tolist(), last.levels.tolist()) == ([2, 0], [0])
    assert "with other content" in str(results[3])
    assert "the request's id is ''" in str(results[4])
    standing = ledger.standing(now=START)
    assert (standing.promised, standing.spent, standing.room) == (100_000_000, 0, 0)
    assert (standing.requests, standing.decisions, standing.state) == (3, 12, (3.0,))
    assert ledger.audit().matches


def test_a_request_twice_in_one_transaction_is_decided_once(ledger: Ledger) -> None:
    first, other = (DecisionRequest("1", make_offers(list(names))) for names in ("ab", "cd"))
    many = [DecisionRequest(f"m{k}", make_offers(["a"], face=(0, 0, 0))) for k in range(1100)]
    results = ledger.decide_together([first, first, other, *many], Dearest(), now=START)
    decided, repeated, refused = results[:3]
    assert isinstance(refused, LedgerError)
    assert isinstance(decided, LedgerDecisions)
    assert isinstance(repeated, LedgerDecisions)
    assert (repeated.levels.tolist(), repeated.repeated) == (decided.levels.tolist(), True)
    assert (ledger.standing(now=START).requests, ledger.standing(now=START).promised) == (1101, 20_000_000)
    assert ledger.audit().matches
    again = ledger.decide_together(many, Dearest(), now=START)
    assert all(isinstance(each, LedgerDecisions) and each.repeated for each in again)


def test_a_repeated_request_gets_the_same_answer_and_costs_nothing(ledger: Ledger) -> None:
    first = ledger.decide("1", make_offers(["a", "b"]), Dearest(), policy="v1", now=START)
    again = ledger.decide("1", make_offers(["a", "b"]), Dearest(), policy="v2", now=START + DAY)
    assert (first.repeated, again.repeated) == (False, True)
    assert (again.policy, again.decided_at, again.expires_at) == ("v1", START, START + 7 * DAY)
    for name in ("levels", "propensity", "responses", "price", "reason", "at_once", "face", "expected"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    standing = ledger.standing(now=START)
    assert (standing.promised, standing.state) == (20_000_000, (1.0,))


def test_the_same_id_with_other_content_is_refused(ledger: Ledger) -> None:
    decide(ledger, "1", "ab")
    decide(ledger, "2", "ab", content=b"age 30")
    for request, customers, content in (("1", "ac", None), ("2", "ab", b"age 31")):
        with pytest.raises(LedgerError, match="with other content"):
            decide(ledger, request, customers, content=content)


def test_a_chooser_that_overspends_changes_nothing(ledger: Ledger) -> None:
    class Greedy(Dearest):
        def choose(self, standing: Any, offers: Any) -> ChosenLevels:
            return replace(super().choose(standing, offers), levels=np.full(len(offers), 2))

    with pytest.raises(RuntimeError, match="more than the ledger has room for"):
        ledger.decide("1", make_offers(list("abcdefghijk")), Greedy(), now=START)
    assert ledger.standing(now=START).decisions == 0


def test_decisions_come_back_as_rows_for_the_next_log(ledger: Ledger) -> None:
    decide(ledger, "1", "ab", policy="v1")
    ledger.redeem("1", "b", now=START)
    rows = [(row[0], row[1], row[2], row[10], row[11]) for row in ledger.decisions()]
    assert rows == [("1", "a", 2, None, "v1"), ("1", "b", 2, 10_000_000, "v1")]


# -- redemptions ---------------------------------------------------------------------------------------------------------


def test_redemptions_that_do_not_match_a_promise_are_refused(ledger: Ledger) -> None:
    decide(ledger, "1", "ab")
    ledger.decide("2", make_offers(["a"], face=(0, 0, 0), at_once=(0, 5, 10)), Dearest(), now=START)
    ledger.redeem("1", "a", "7.50", now=START)
    for request, customer, amount, words in (
        ("1", "a", 9, r"redeemed 7.50 at .*, not 9.00"),
        ("1", "b", 10.01, "a redemption of 10.01, but 10.00 was promised"),
        ("1", "z", None, "holds no decision for the customer 'z'"),
        ("2", "a", None, "was promised nothing"),
    ):
        with pytest.raises(LedgerError, match=words):
            ledger.redeem(request, customer, amount, now=START)
    assert ledger.redeem("1", "a", "7.50", now=START + 2 * DAY).repeated
    standing = ledger.standing(now=START)
    assert (standing.spent, standing.promised, standing.room) == (17_500_000, 10_000_000, 72_500_000)


def test_promises_expire_and_their_money_is_used_again(ledger: Ledger) -> None:
    assert decide(ledger, "1", "abcdefghij") == [2] * 10
    ledger.redeem("1", "a", now=START + DAY)
    assert decide(ledger, "2", "ab", now=START + 7 * DAY - 1) == [0, 0]
    with pytest.raises(LedgerError, match="the promise ended at"):
        ledger.redeem("1", "b", now=START + 7 * DAY)
    assert decide(ledger, "3", "ab", now=START + 7 * DAY) == [2, 2]
    standing = ledger.standing(now=START + 7 * DAY)
    assert (standing.spent, standing.promised, standing.expired) == (10_000_000, 20_000_000, 9)
    assert (standing.settled_expected, standing.settled_paid) == (50_000_000, 10_000_000)


def test_an_accepted_late_redemption_is_paid_from_what_is_left_and_released(address: str) -> None:
    with open_ledger(address, fixed_terms(late="accept")) as ledger:
        decide(ledger, "1", "a")
        assert ledger.redeem("1", "a", now=START + 8 * DAY).late
        decide(ledger, "2", "b", now=START + 8 * DAY)
        assert decide(ledger, "3", "cdefghijk", now=START + 15 * DAY) == [2] * 9
        with pytest.raises(LedgerError, match=r"only 0.00 is left"):
            ledger.redeem("2", "b", now=START + 16 * DAY)
        assert ledger.redeem("2", "b", now=START + 23 * DAY).paid == 10_000_000  # the others are over
        assert ledger.audit().matches


def test_promises_that_outlast_the_period_count_in_full(ledger: Ledger) -> None:
    decide(ledger, "1", "a", now=START + 20 * DAY)
    decide(ledger, "2", "b", now=START + 25 * DAY)
    standing = ledger.standing(now=START + 25 * DAY)
    assert (standing.open_expected, standing.late_face) == (5_000_000, 10_000_000)
    ledger.redeem("2", "b", 4, now=START + 26 * DAY)
    assert ledger.standing(now=START + 26 * DAY).late_face == 4_000_000
    assert ledger.standing(now=START + 40 * DAY).late_face == 0
    assert ledger.audit().matches


def test_a_clock_that_goes_back_releases_nothing_twice(ledger: Ledger) -> None:
    decide(ledger, "1", "ab")
    decide(ledger, "0", "x", now=START + 8 * DAY)
    for now in (START, START - DAY, 0):
        standing = ledger.standing(now=now)
        assert (standing.promised, standing.expired, standing.room) == (10_000_000, 2, 90_000_000)
    assert decide(ledger, "2", "a", now=START - DAY) == [0]
    assert decide(ledger, "3", "a", now=START + DAY) == [2]
    assert not ledger.redeem("3", "a", now=START).late  # by a clock before the decision
    assert ledger.audit().matches


def test_a_clock_that_was_ahead_breaks_no_promise_while_there_is_room(ledger: Ledger) -> None:
    decide(ledger, "1", "abc")
    assert ledger.standing(now=START + 8 * DAY).promised == 0
    assert ledger.standing(now=START).promised == 30_000_000  # a read has closed nothing
    assert not ledger.redeem("1", "a", now=START + DAY).late
    decide(ledger, "2", "defghijk", now=START + 8 * DAY)  # a decision has
    redemption = ledger.redeem("1", "b", now=START + 2 * DAY)
    assert (redemption.paid, ledger.redeem("1", "b", now=START + 3 * DAY).repeated) == (10_000_000, True)
    with pytest.raises(LedgerError, match=r"only 0.00 is left"):
        ledger.redeem("1", "c", now=START + 2 * DAY)
    assert ledger.standing(now=START + 2 * DAY).room == 0
    assert ledger.audit().matches


def test_a_jump_of_the_clock_counts_once_it_has_lasted(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks, clock, minute = 10**12, SteadyClock(), 60_000_000
    monkeypatch.setattr(amounts_and_times, "read_uptime_micros", lambda: ticks)
    assert clock.read(START) == START
    for minutes, ahead, shown in (
        *((1, 0, 1), (2, 0.5, 2.5), (3, 20, 3.5), (4, -1000, 4.5), (5, 0.5, 5.5), (6, 20, 6.5), (7, 20.5, 7.5)),
        *((15.9, 20.5, 16.4), (16, 20.5, 36.5), (17, 20.5, 37.5), (18, 0, 38.5), (29, 0, 29)),
    ):
        ticks = 10**12 + int(minutes * minute)
        assert (clock.read(START + int((minutes + ahead) * minute)) - START) / minute == pytest.approx(shown)


# -- promises that hold while the budget lasts ---------------------------------------------------------------------------


def test_more_is_promised_than_the_budget_and_redeemed_while_it_lasts(lasting: Ledger) -> None:
    assert decide(lasting, "1", "abcdefghijklmnopqrstuvw") == [2] * 20 + [0] * 3
    standing = lasting.standing(now=START)
    assert (standing.promised, standing.held, standing.spent, standing.room) == (200_000_000, 100_000_000, 0, 0)
    assert (standing.open_expected, standing.late_face) == (100_000_000, 0)
    for customer in "abcdefghi":
        lasting.redeem("1", customer, now=START + DAY)
    lasting.redeem("1", "j", "9.50", now=START + DAY)
    with pytest.raises(LedgerError, match=r"does not last: 0.50 is left, and the customer 'k' redeems 10.00") as caught:
        lasting.redeem("1", "k", now=START + DAY)
    assert "redeem 0.50 or less, or raise the total" in str(caught.value)
    assert lasting.redeem("1", "l", "0.5", now=START + DAY).paid == 500_000
    standing = lasting.standing(now=START + DAY)
    assert (standing.spent, standing.room, standing.redemptions) == (100_000_000, 0, 11)
    lasting.change_total(110)
    assert lasting.redeem("1", "k", now=START + DAY).paid == 10_000_000
    assert lasting.audit().matches


def test_how_long_redemptions_took_is_counted_when_promises_end(lasting: Ledger) -> None:
    decide(lasting, "1", "abc")
    lasting.redeem("1", "a", 8, now=START + 7 * DAY // 2)
    lasting.redeem("1", "b", now=START - DAY)  # another clock
    assert lasting.standing(now=START + 4 * DAY).settled_wait == 0
    standing = lasting.standing(now=START + 7 * DAY)
    assert (standing.settled_paid, standing.settled_wait) == (18_000_000, 4_000_000)
    assert (standing.held, standing.promised, standing.room) == (0, 0, 82_000_000)
    assert lasting.audit().matches


# -- the total -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("promises", "least"), [("kept", 50), ("while_it_lasts", 10)])
def test_the_total_is_changed_but_not_below_what_is_given(address: str, promises: str, least: int) -> None:
    with open_ledger(address, fixed_terms(promises=promises)) as ledger:
        decide(ledger, "1", "abcde")
        ledger.redeem("1", "a", now=START + DAY)
        with pytest.raises(LedgerError, match=rf"below the {least}.00"):
            ledger.change_total(least - 0.01)
        assert ledger.change_total(least).room == 0
        assert ledger.change_total(60).terms.total == 60_000_000


def test_the_total_is_lowered_by_what_promises_that_are_over_release(address: str) -> None:
    today = now_micros()
    with open_ledger(address, LedgerTerms(100_000_000, today - 30 * DAY, today + 30 * DAY, 7 * DAY)) as ledger:
        decide(ledger, "1", "abcdefgh", now=today - 20 * DAY)
        assert ledger.change_total(50).room == 50_000_000
        assert ledger.audit().matches


def test_the_database_itself_refuses_to_overspend(address: str) -> None:
    for name, promises, wrong in (("a", "kept", "promised = 100000001"), ("b", "while_it_lasts", "spent = 100000001")):
        with open_ledger(address.replace("ledger", f"{name}_ledger"), fixed_terms(promises=promises)) as ledger:
            with pytest.raises(LedgerError, match=r"(?i)check"):
                ledger._run_transaction(lambda session, wrong=wrong: session.run(f"UPDATE ledger SET {wrong}"))  # type: ignore[misc]
            assert ledger.standing(now=START).room == 100_000_000


def test_the_audit_finds_what_does_not_add_up(ledger: Ledger) -> None:
    decide(ledger, "1", "ab")
    assert ledger.audit().matches
    ledger._run_transaction(lambda session: session.run("DELETE FROM decision WHERE customer = 'a'"))
    assert ledger.audit().differences["promised"] == (20_000_000, 10_000_000)


def test_customers_that_cannot_be_kept_are_refused() -> None:
    for customers, words in ((["a", "a", "b"], "a customer comes twice: a"), ([""], "a customer is ''")):
        with pytest.raises(InputError, match=words):
            make_offers(customers)
