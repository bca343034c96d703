"""Exceptions, checks of arguments that collect problems, and formatting of error messages.

An error says what is wrong, what was found and what to do. Checks collect `Problem` records, so that one message names
everything that is wrong with an input.
"""

from __future__ import annotations

import difflib
import importlib
import os
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from typing import Any, NoReturn

DIRECTION_MARKS = frozenset(
    "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)  # reverse the order of letters
MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 4096  # on the usual file systems
MAX_VALUES_LISTED = 8
MAX_COMPARED_NAMES = 2000  # with an unknown name: a request may hold millions of keys
MIN_RESPONSE_VALUE = 1e-100  # its inverse is the maximum, so that products with responses stay finite
RESPONSE_VALUE_HINT = "give what one unit of response is worth, in the unit of costs: a number above zero, like 0.35"
BUDGET_HINT = "a budget is a number, zero or more; for no limit, give what the dearest level costs"


@dataclass(frozen=True)
class Problem:
    """Problem in an error message, with a hint at the solution."""

    what: str
    hint: str = ""

    def __post_init__(self) -> None:
        # Problems quote names and values of users, whose control characters must not reach a terminal.
        object.__setattr__(self, "what", make_visible(self.what))
        object.__setattr__(self, "hint", make_visible(self.hint))

    def __str__(self) -> str:
        return f"{self.what}\n   → {self.hint}" if self.hint else self.what


class LargesseError(Exception):
    """Base class of all errors that largesse raises deliberately.

    >>> print(LargesseError("the log", [Problem("it is empty", "write some rows")]))
    the log: it is empty
       → write some rows
    """

    def __init__(self, subject: str, problems: Sequence[Problem]) -> None:
        self.subject = make_visible(subject)
        self.problems = tuple(problems)
        super().__init__(self.subject, self.problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return f"{self.subject}: {self.problems[0]}"
        numbered = "\n".join(f"{i}. {problem}" for i, problem in enumerate(self.problems, start=1))
        return f"{self.subject}: {len(self.problems)} things are wrong\n{numbered}"


class InputError(LargesseError, ValueError):
    """Error for an invalid table, campaign file or argument."""


class BudgetError(LargesseError, ValueError):
    """Error for a budget that no plan can meet."""


class PolicyFileError(LargesseError, ValueError):
    """Error for a damaged policy file, or one of another version."""


class OutputError(LargesseError, OSError):
    """Error for output that could not be written."""


class LedgerError(LargesseError, OSError):
    """Error for a ledger that is unreachable or invalid, or that refuses a request."""


class NotFittedError(LargesseError, AttributeError):
    """Error for the use of a model or policy before fitting."""


def fail_not_fitted(subject: str, problem: Problem) -> NoReturn:
    """Raise a `NotFittedError` that is also scikit-learn's `NotFittedError`.

    >>> from sklearn.exceptions import NotFittedError
    >>> try:
    ...     fail_not_fitted("Linear", Problem("it has not been fitted yet", "call Linear().fit(log) first"))
    ... except NotFittedError as error:
    ...     print(error)
    Linear: it has not been fitted yet
       → call Linear().fit(log) first
    """
    raise _join_not_fitted_errors()(subject, [problem])


@cache
def _join_not_fitted_errors() -> type[NotFittedError]:
    from sklearn import exceptions  # imported here: it takes a third of a second

    return type("NotFittedError", (NotFittedError, exceptions.NotFittedError), {"__module__": __name__})


class MissingPackageError(LargesseError, ImportError):
    """Error for an optional package that is not installed."""


def import_optional_package(module: str, extra: str, purpose: str, *, hint: str = "") -> Any:
    """Import an optional package; raise `MissingPackageError` with an install command if it is missing.

    Parameters
    ----------
    module
        The module to import: "onnx".
    extra
        The extra of largesse that holds it: "export". Empty without one; then `hint` is the remedy.
    purpose
        The subject of the message: "export".

    Examples
    --------
    >>> import_optional_package("json", "export", "export").dumps({})
    '{}'
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the package's own classes and its own dependencies
            return importlib.import_module(module)
    except ImportError as missing:
        problem = Problem(
            f"the package {(missing.name or module)!r} is not installed", hint or f"pip install 'largesse[{extra}]'"
        )
        raise MissingPackageError(purpose, [problem]) from missing


def make_visible(text: str) -> str:
    r"""Escape control characters and invisible marks in a text, except line ends.

    >>> make_visible("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter == "\n" or not _is_hidden_character(letter) else _escape_character(letter) for letter in text
    )


def _escape_character(letter: str) -> str:
    # Python keeps a byte of a name that is not UTF-8 as U+DC80 to U+DCFF.
    code = ord(letter)
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else letter.encode("unicode_escape").decode("ascii")


def _is_hidden_character(letter: str) -> bool:
    return letter in DIRECTION_MARKS or unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")


def refuse(subject: str, problems: Sequence[Problem]) -> None:
    """Raise one `InputError` that lists all problems; do nothing without problems."""
    if problems:
        raise InputError(subject, problems)


def fail(subject: str, problem: Problem, error: type[LargesseError] = InputError) -> NoReturn:
    """Raise an error for a single problem."""
    raise error(subject, [problem])


def find_budget_problems(budget: Any, name: str = "the budget", *, unlimited: bool = False) -> list[Problem]:
    """Return a problem unless a budget is a finite non-negative number.

    With `unlimited`, an infinite budget is valid, too.

    >>> find_budget_problems(1.7)
    []
    >>> print(find_budget_problems(-1)[0].what)
    the budget is -1
    """
    number = number_or_none(budget)
    if number is not None and number >= 0 and (unlimited or number < float("inf")):
        return []
    return [Problem(f"{name} is {repr_short(budget)}", BUDGET_HINT)]


def find_response_value_problems(value: Any) -> list[Problem]:
    """Return a problem unless `response_value` (money per unit of response) is None or a positive number.

    >>> find_response_value_problems(0.35), find_response_value_problems(None)
    ([], [])
    >>> print(find_response_value_problems(0)[0].what)
    response_value is 0
    """
    number = number_or_none(value)
    if value is None or (number is not None and MIN_RESPONSE_VALUE <= number <= 1 / MIN_RESPONSE_VALUE):
        return []
    return [Problem(f"response_value is {repr_short(value)}", RESPONSE_VALUE_HINT)]


def find_confidence_problems(value: Any, name: str) -> list[Problem]:
    """Return a problem unless a confidence level lies in [0.5, 1).

    >>> print(find_confidence_problems(95, "confidence")[0].what)
    confidence is 95
    """
    number = number_or_none(value)
    if number is not None and 0.5 <= number < 1:
        return []
    hint = "give a probability from 0.5 (as likely above the budget as below) to 0.99"
    return [Problem(f"{name} is {repr_short(value)}", hint)]


def find_row_limit_problems(most_rows: Any, name: str) -> list[Problem]:
    """Return a problem unless a row limit is a positive integer or "auto".

    >>> find_row_limit_problems("auto", "most_rows"), find_row_limit_problems(1000, "most_rows")
    ([], [])
    """
    if (isinstance(most_rows, str) and most_rows == "auto") or not find_integer_problems(most_rows, name, 1):
        return []
    return [Problem(f"{name} is {repr_short(most_rows)}", 'give a whole number of rows, or "auto"')]


def number_or_none(value: Any) -> float | None:
    """Convert a real number to a float; return None for any other value.

    Integers beyond the range of floats also give None.

    >>> number_or_none(3), number_or_none("3"), number_or_none(True), number_or_none(10**400)
    (3.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def find_integer_problems(value: Any, name: str, least: int = 0, most: int | None = None) -> list[Problem]:
    """Return a problem unless a value is an integer from `least` to `most`.

    >>> print(find_integer_problems(2.5, "folds", least=2)[0])
    folds is 2.5
       → give a whole number, 2 or more
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if whole and least <= value and (most is None or value <= most):
        return []
    limit = f"{least} or more" if most is None else f"from {least} to {most}"
    return [Problem(f"{name} is {repr_short(value)}", f"give a whole number, {limit}")]


def repr_short(value: Any, most: int = 80) -> str:
    """Format any value for a message, shortened to a maximum length.

    >>> repr_short("x"), repr_short(10**400, most=5)
    ("'x'", '10000…')
    """
    try:
        text = str(value) if isinstance(value, Real) else repr(value)
    except Exception:  # a number with too many digits, a list that contains itself, a foreign object
        return f"a {type(value).__name__}"
    return text if len(text) <= most else f"{text[:most]}…"


def find_path_problems(
    path: str | os.PathLike[str], name: str = "the path", *, is_written: bool = False
) -> list[Problem]:
    """Return a problem if a path is too long or has invalid characters.

    A path that `is_written` into a file must be valid text.

    >>> find_path_problems("log.csv")
    []
    """
    text = os.fspath(path)
    raw = text.encode("utf-8", "surrogatepass")
    text_shown = f"{name} {text if len(text) <= 80 else text[:77] + '…'!r}"
    if "\0" in text or (is_written and any("\ud800" <= letter <= "\udfff" for letter in text)):
        return [Problem(f"{text_shown} contains a NUL character or is not UTF-8", "rename the file or the folder")]
    if len(raw) >= MAX_PATH_BYTES or max(map(len, raw.split(os.sep.encode()))) > MAX_NAME_BYTES:
        return [Problem(f"{text_shown} is too long", f"a name has at most {MAX_NAME_BYTES} bytes")]
    return []


def make_below_cheapest_error(subject: str, budget: float, cheapest: float, unit: str = " per customer") -> BudgetError:
    """Build the error for a budget below the cost of the cheapest plan."""
    got = f"the budget of {budget:g} is below the cheapest plan, which costs {cheapest:g}{unit}"
    return BudgetError(subject, [Problem(got, "raise the budget, or add a level that costs nothing")])


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a hint with the known name most similar to a misspelt name, or with all known names.

    >>> suggest("coupn", ["age", "coupon"])
    "did you mean 'coupon'?"
    >>> suggest("zzz", ["age", "coupon"])
    'known: age, coupon'
    """
    folded: dict[str, str] = {}
    names = list(known)
    for candidate in names[:MAX_COMPARED_NAMES]:
        folded.setdefault(candidate.lower(), candidate)
    match = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    if match:
        return f"did you mean {folded[match[0]]!r}?"
    similarity = {other: _measure_similarity(name.lower(), other) for other in folded}
    # A shortened list begins with similar names; the others keep their order.
    cut = 0.5 if len(folded) > MAX_VALUES_LISTED else float("inf")
    order = sorted(folded, key=lambda other: -similarity[other] if similarity[other] >= cut else 0)
    return (
        f"known: {join_some([folded[other] for other in order] + names[MAX_COMPARED_NAMES:])}"
        if folded
        else "there are none"
    )


def _measure_similarity(name: str, other: str) -> float:
    """Return the similarity of two names; it is highest if one contains the other."""
    inside = min(len(name), len(other)) >= 2 and (name in other or other in name)
    return difflib.SequenceMatcher(None, other, name).ratio() + inside


def join_some(values: Sequence[object], limit: int = MAX_VALUES_LISTED) -> str:
    """Join the first few values to a text, with the number of the others.

    >>> join_some([1, 2, 3], limit=2)
    '1, 2, … (1 more)'
    """
    text = ", ".join(str(value) for value in values[:limit])
    rest = len(values) - limit
    return f"{text}, … ({rest} more)" if rest > 0 else text


def plural(n: int, thing: str) -> str:
    """Format a number with its noun, singular or plural.

    >>> plural(1, "row"), plural(1234, "row")
    ('1 row', '1,234 rows')
    """
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def percent(share: float, decimals: int = 0) -> str:
    """Format a share as a percentage.

    >>> percent(0.0283, 1), percent(0.5)
    ('2.8 %', '50 %')
    """
    return f"{100 * share:.{decimals}f} %"
