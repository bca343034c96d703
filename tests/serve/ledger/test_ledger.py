"""A ledger keeps every decision once, and never promises more than it has."""

import sqlite3
from collections.abc import Iterator

import numpy as np
import pytest

from largesse.errors import InputError, LedgerError
from largesse.serve import DecisionRequest, Ledger, LedgerTerms, open_ledger
from largesse.serve.ledger.units import now_micros
from support.ledgers import DAY, START, Dearest, fixed_terms, make_offers


@pytest.fixture
def ledger(address: str) -> Iterator[Ledger]:
    with open_ledger(address, fixed_terms()) as opened:
        yield opened


def decide(ledger: Ledger, request: str, customers: str, now: int = START, **given: object) -> list[int]:
    offers = make_offers(list(customers))
    return ledger.decide(request, offers, Dearest(), now=now, **given).levels.tolist()  # type: ignore[arg-type]


def test_levels_fit_into_what_is_left(ledger: Ledger) -> None:
    assert decide(ledger, "1", "abcdefghi") == [2] * 9
    assert decide(ledger, "2", "abc") == [2, 0, 0]
    standing = ledger.standing(now=START)
    assert (standing.promised, standing.spent, standing.room) == (100_000_000, 0, 0)


def test_a_repeated_request_gets_the_same_answer_and_costs_nothing(ledger: Ledger) -> None:
    first = ledger.decide("1", make_offers(["a", "b"]), Dearest(), policy="v1", now=START)
    again = ledger.decide("1", make_offers(["a", "b"]), Dearest(), policy="v2", now=START + DAY)
    assert again.repeated
    assert not first.repeated
    assert (again.policy, again.decided_at, again.expires_at) == ("v1", START, START + 7 * DAY)
    for name in ("levels", "propensity", "responses", "price", "reason", "at_once", "face", "expected"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    assert ledger.standing(now=START).promised == 20_000_000
    assert ledger.standing(now=START).state == (1.0,)


def test_requests_that_are_decided_together_are_as_if_one_came_after_the_other(ledger: Ledger) -> None:
    names = ["1", "2", "1", "1", "", "3"]
    people = ["abcdefghi", "ab", "abcdefghi", "x", "y", "z"]
    asks = [DecisionRequest(name, make_offers(list(who)), "v1") for name, who in zip(names, people, strict=True)]
    first, second, again, *refused, last = ledger.decide_together(asks, Dearest(), now=START)
    assert not isinstance(first, Exception)
    assert not isinstance(second, Exception)
    assert not isinstance(again, Exception)
    assert not isinstance(last, Exception)
    assert first.levels.tolist() == again.levels.tolist() == [2] * 9
    assert (first.repeated, again.repeated) == (False, True)
    assert (second.levels.tolist(), last.levels.tolist()) == ([2, 0], [0])
    assert "with other content" in str(refused[0])
    assert "the request's id is ''" in str(refused[1])
    standing = ledger.standing(now=START)
    assert (standing.promised, standing.requests, standing.decisions) == (100_000_000, 3, 12)
    assert standing.state == (3.0,)
    assert ledger.audit().fine


def test_the_same_id_with_other_content_is_refused(ledger: Ledger) -> None:
    decide(ledger, "1", "ab")
    with pytest.raises(LedgerError, match="with other content"):
        decide(ledger, "1", "ac")
    decide(ledger, "2", "ab", content=b"age 30")
    with pytest.raises(LedgerError, match="with other content"):
        decide(ledger, "2", "ab", content=b"age 31")


def test_a_redemption_is_counted_once(ledger: Ledger) -> None:
    decide(ledger, "1", "ab")
    assert ledger.redeem("1", "a", now=START + DAY).paid == 10_000_000
    assert ledger.redeem("1", "a", now=START + 2 * DAY).repeated
    standing = ledger.standing(now=START + 2 * DAY)
    assert (standing.spent, standing.promised, standing.redemptions) == (10_000_000, 10_000_000, 1)
    with pytest.raises(LedgerError, match=r"redeemed 10.00 at .*, not 9.00"):
        ledger.redeem("1", "a", 9)


def test_what_is_not_redeemed_in_full_is_released(ledger: Ledger) -> None:
    decide(ledger, "1", "a")
    ledger.redeem("1", "a", "7.50", now=START)
    assert ledger.standing(now=START).room == 92_500_000


def test_a_redemption_above_the_promise_is_refused(ledger: Ledger) -> None:
    decide(ledger, "1", "a")
    with pytest.raises(LedgerError, match=r"a redemption of 10.01, but 10.00 was promised"):
        ledger.redeem("1", "a", 10.01)
    with pytest.raises(LedgerError, match="holds no decision for the customer 'z'"):
        ledger.redeem("1", "z")


def test_promises_expire_and_their_money_is_used_again(ledger: Ledger) -> None:
    assert decide(ledger, "1", "abcdefghij") == [2] * 10
    ledger.redeem("1", "a", now=START + DAY)
    assert decide(ledger, "2", "ab", now=START + 7 * DAY - 1) == [0, 0]
    assert decide(ledger, "3", "ab", now=START + 7 * DAY) == [2, 2]
    standing = ledger.standing(now=START + 7 * DAY)
    assert (standing.spent, standing.promised, standing.expired) == (10_000_000, 20_000_000, 9)
    assert (standing.settled_expected, standing.settled_paid) == (50_000_000, 10_000_000)


def test_a_late_redemption_is_refused_or_paid_from_what_is_left(address: str) -> None:
    with open_ledger(address, fixed_terms(late="accept")) as ledger:
        decide(ledger, "1", "a")
        assert ledger.redeem("1", "a", now=START + 8 * DAY).late
        decide(ledger, "2", "b", now=START + 8 * DAY)
        assert decide(ledger, "3", "cdefghijk", now=START + 15 * DAY) == [2] * 9
        with pytest.raises(LedgerError, match=r"only 0.00 is left"):
            ledger.redeem("2", "b", now=START + 16 * DAY)
        assert ledger.audit().fine


def test_a_late_redemption_may_use_what_other_promises_that_are_over_release(address: str) -> None:
    with open_ledger(address, fixed_terms(late="accept")) as ledger:
        decide(ledger, "1", "a")
        ledger.standing(now=START + 8 * DAY)  # releases it
        decide(ledger, "2", "abcdefghij", now=START + 8 * DAY)
        assert ledger.redeem("1", "a", now=START + 20 * DAY).paid == 10_000_000
        assert ledger.audit().fine


def test_a_late_redemption_is_refused_unless_the_terms_accept_it(ledger: Ledger) -> None:
    decide(ledger, "1", "a")
    with pytest.raises(LedgerError, match="the promise ended at"):
        ledger.redeem("1", "a", now=START + 7 * DAY)
    assert ledger.standing(now=START + 7 * DAY).room == 100_000_000


def test_what_is_paid_at_once_is_spent(ledger: Ledger) -> None:
    offers = make_offers(["a", "b"], face=(0, 0, 0), at_once=(0, 5, 10))
    ledger.decide("1", offers, Dearest(), now=START)
    assert ledger.standing(now=START + 20 * DAY).spent == 20_000_000
    with pytest.raises(LedgerError, match="was promised nothing"):
        ledger.redeem("1", "a")


def test_promises_that_outlast_the_period_count_in_full(ledger: Ledger) -> None:
    decide(ledger, "1", "a", now=START + 20 * DAY)
    decide(ledger, "2", "b", now=START + 25 * DAY)
    standing = ledger.standing(now=START + 25 * DAY)
    assert (standing.open_expected, standing.late_face) == (5_000_000, 10_000_000)
    ledger.redeem("2", "b", 4, now=START + 26 * DAY)
    assert ledger.standing(now=START + 26 * DAY).late_face == 4_000_000
    assert ledger.standing(now=START + 40 * DAY).late_face == 0
    assert ledger.audit().fine


# -- promises that hold while the budget lasts ---------------------------------------------------------------------------


@pytest.fixture
def lasting(address: str) -> Iterator[Ledger]:
    with open_ledger(address, fixed_terms(promises="while_it_lasts")) as opened:
        yield opened


def test_more_is_promised_than_the_budget_and_less_is_expected(lasting: Ledger) -> None:
    assert decide(lasting, "1", "abcdefghijklmnopqrstuvw") == [2] * 20 + [0] * 3
    standing = lasting.standing(now=START)
    assert (standing.promised, standing.held, standing.spent, standing.room) == (200_000_000, 100_000_000, 0, 0)
    assert (standing.open_expected, standing.late_face) == (100_000_000, 0)


def test_a_redemption_is_refused_once_the_budget_does_not_last(lasting: Ledger) -> None:
    decide(lasting, "1", "abcdefghijklmnopqrst")
    for customer in "abcdefghi":
        lasting.redeem("1", customer, now=START + DAY)
    lasting.redeem("1", "j", "9.50", now=START + DAY)
    with pytest.raises(LedgerError, match=r"does not last: 0.50 is left, and the customer 'k' redeems 10.00") as caught:
        lasting.redeem("1", "k", now=START + DAY)
    assert "redeem 0.50 or less, or raise the total" in str(caught.value)
    assert lasting.redeem("1", "j", "9.50", now=START + DAY).repeated
    assert lasting.redeem("1", "l", "0.5", now=START + DAY).paid == 500_000
    standing = lasting.standing(now=START + DAY)
    assert (standing.spent, standing.room, standing.redemptions) == (100_000_000, 0, 11)
    lasting.change_total(110)
    assert lasting.redeem("1", "k", now=START + DAY).paid == 10_000_000
    assert lasting.audit().fine


def test_the_total_can_be_lowered_to_what_is_spent(lasting: Ledger) -> None:
    decide(lasting, "1", "abcdefghij")
    lasting.redeem("1", "a", now=START + DAY)
    with pytest.raises(LedgerError, match=r"a total of 9.99 is below the 10.00 that are spent$|that are spent\n"):
        lasting.change_total("9.99")
    assert lasting.change_total(10).room == 0


def test_the_database_itself_refuses_to_overspend(address: str) -> None:
    for name, promises, wrong in (("a", "kept", "promised = 100000001"), ("b", "while_it_lasts", "spent = 100000001")):
        own = address.replace("ledger", f"{name}_ledger")
        with open_ledger(own, fixed_terms(promises=promises)) as ledger:
            with pytest.raises(LedgerError, match=r"(?i)check"):
                ledger._transact(lambda session, wrong=wrong: session.run(f"UPDATE ledger SET {wrong}"))  # type: ignore[misc]
            assert ledger.standing(now=START).room == 100_000_000


def test_how_long_redemptions_took_is_counted_when_promises_end(lasting: Ledger) -> None:
    decide(lasting, "1", "abc")
    lasting.redeem("1", "a", 8, now=START + 7 * DAY // 2)
    lasting.redeem("1", "b", now=START - DAY)  # another clock
    assert lasting.standing(now=START + 4 * DAY).settled_wait == 0
    standing = lasting.standing(now=START + 7 * DAY)
    assert (standing.settled_paid, standing.settled_wait) == (18_000_000, 4_000_000)
    assert (standing.held, standing.promised, standing.room) == (0, 0, 82_000_000)
    assert lasting.audit().fine


def test_a_chooser_that_overspends_changes_nothing(ledger: Ledger) -> None:
    class Greedy(Dearest):
        def choose(self, standing, offers):  # type: ignore[no-untyped-def]
            from dataclasses import replace

            return replace(super().choose(standing, offers), levels=np.full(len(offers), 2))

    with pytest.raises(RuntimeError, match="more than the ledger has room for"):
        ledger.decide("1", make_offers(list("abcdefghijk")), Greedy(), now=START)
    assert ledger.standing(now=START).decisions == 0


def test_the_audit_finds_what_does_not_add_up(address: str) -> None:
    if not address.startswith("sqlite"):
        pytest.skip("the file is changed by hand")
    with open_ledger(address, fixed_terms()) as ledger:
        decide(ledger, "1", "ab")
        assert ledger.audit().fine
        with sqlite3.connect(address.removeprefix("sqlite:///")) as file:
            file.execute("DELETE FROM decision WHERE customer = 'a'")
        assert ledger.audit().differences["promised"] == (20_000_000, 10_000_000)


def test_the_total_can_be_changed_but_not_below_what_is_given(ledger: Ledger) -> None:
    decide(ledger, "1", "abcde")
    with pytest.raises(LedgerError, match=r"below the 50.00"):
        ledger.change_total(49.99)
    assert ledger.change_total(60).terms.total == 60_000_000
    assert decide(ledger, "2", "ab") == [2, 0]


def test_the_total_can_be_lowered_by_what_promises_that_are_over_release(address: str) -> None:
    today = now_micros()
    terms = LedgerTerms(100_000_000, today - 30 * DAY, today + 30 * DAY, 7 * DAY)
    with open_ledger(address, terms) as ledger:
        decide(ledger, "1", "abcdefgh", now=today - 20 * DAY)
        assert ledger.change_total(50).room == 50_000_000
        assert ledger.standing().terms.total == 50_000_000
        assert ledger.audit().fine


def test_decisions_come_back_as_rows_for_the_next_log(ledger: Ledger) -> None:
    decide(ledger, "1", "ab", policy="v1")
    ledger.redeem("1", "b", now=START)
    rows = list(ledger.decisions())
    assert [(row[0], row[1], row[2], row[10], row[11]) for row in rows] == [
        ("1", "a", 2, None, "v1"),
        ("1", "b", 2, 10_000_000, "v1"),
    ]


def test_customers_and_ids_that_cannot_be_kept_are_refused(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="a customer comes twice: a"):
        make_offers(["a", "a", "b"])
    with pytest.raises(InputError, match="a customer is ''"):
        make_offers([""])
    with pytest.raises(InputError, match="the request's id is"):
        decide(ledger, "x" * 201, "a")
