"""What a run has finished, kept until it succeeds: one that was stopped goes on from there.

The work folder of a run (see `files.work`) has one folder inside, named by the fingerprint of all that a fit depends on:
the log's values, the campaign but for what it plans, the engine, and the versions that compute. In it lie the fold models
of each member, then the whole fit, then the propensities. Each file is written whole, and has its own digest or key; one
that is missing or damaged is made anew. To keep something is never worth an error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from largesse.campaign import Campaign, Planning
from largesse.errors import LargesseError
from largesse.io import atomic_file, check_shape, open_work, read_archive, write_archive
from largesse.pipeline.economy import Economy
from largesse.pipeline.engine import Engine
from largesse.pipeline.kept import key_of, read_kept, table_of
from largesse.pipeline.steps import Examined, Fitted
from largesse.policy import Policy
from largesse.progress import send_message
from largesse.records import Array, HeldOut, Log, Propensities
from largesse.response import ResponseModel, check_model_name, keep_fits, model_classes
from largesse.version import __version__

MEMBERS = "largesse members"  # the format of the fold models of a member
ECONOMY, POLICY, HELD, SCORES = "economy.json", "policy.largesse", "held.parquet", "scores.parquet"
MOST_BYTES = 2**16  # of what says what is left out
COMPUTE = ("numpy", "scipy", "scikit-learn", "pyarrow", "jax", "numba")  # other versions may give other bits


class Unfinished:
    """The finished stages of a run that is under way; it also keeps the fits of members (see `keep_fits`)."""

    def __init__(self, folder: Path, log: Log, engine: Engine) -> None:
        self._folder, self._log, self._engine = folder, log, engine
        self._key = folder.name
        self.known: Mapping[str, type[ResponseModel]] = model_classes()

    # -- what is left out -------------------------------------------------------------------------------------------------

    def recall_economy(self) -> Economy | None:
        """Return what the run was to leave out, if that was decided."""
        try:
            with (self._folder / ECONOMY).open("rb") as file:
                found = json.loads(file.read(MOST_BYTES))
            check_shape(found, Economy)
            check_model_name(found["model"])
        except (OSError, ValueError, LargesseError):
            return None
        return Economy(found["model"], found["most_rows"], tuple(found["left_out"]))

    def keep_economy(self, economy: Economy) -> None:
        """Keep what the run is to leave out: timed again, it would come out otherwise, and no fit would belong to it."""
        with _at_no_price(), atomic_file(self._folder / ECONOMY) as part:
            part.write_text(json.dumps(asdict(economy)), encoding="utf-8")

    # -- members ----------------------------------------------------------------------------------------------------------

    def recall(self, key: str) -> tuple[dict[str, Any], dict[str, Array]] | None:
        """Return the fold models that are kept under a key; None if there are none that can be read."""
        try:
            manifest, arrays = read_archive(self._folder / f"{key}.largesse", MEMBERS)
        except LargesseError:
            return None
        return manifest, arrays

    def keep(self, key: str, state: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Keep fold models under a key."""
        with _at_no_price():
            if self._folder.is_dir():  # a thread may still fit when the run has been stopped
                write_archive(self._folder / f"{key}.largesse", MEMBERS, state, arrays)

    # -- the fit ----------------------------------------------------------------------------------------------------------

    def recall_fit(self) -> Fitted | None:
        """Return the fit, if it is kept."""
        held = self._read(HELD)
        if held is None:
            return None
        try:
            policy = Policy.load(self._folder / POLICY)
        except LargesseError:
            return None
        send_message("the fit is as the run that was stopped had finished it")
        return Fitted(policy.model, policy.levels, policy.model.choices_, held[0])

    def keep_fit(self, fitted: Fitted) -> None:
        """Keep the fit: what it expects of held-out rows first, for the model says that all is there."""
        with _at_no_price():
            self._engine.write_table(self._folder / HELD, table_of(self._key, fitted.held, None))
            Policy(fitted.model, fitted.levels).save(self._folder / POLICY)

    # -- scores -----------------------------------------------------------------------------------------------------------

    def recall_propensities(self) -> Propensities | None:
        """Return the propensities of the log, if they are kept."""
        kept = self._read(SCORES)
        return None if kept is None else kept[1]

    def keep_examined(self, examined: Examined) -> None:
        """Keep the propensities of the log."""
        with _at_no_price():
            table = table_of(self._key, examined.held, examined.checkup.propensity)
            self._engine.write_table(self._folder / SCORES, table)

    def _read(self, name: str) -> tuple[HeldOut, Propensities | None] | None:
        return read_kept(self._folder / name, self._key, self._log)


@contextmanager
def go_on(
    work: Path, campaign: Campaign, log: Log, engine: Engine, *, resume: bool, seconds: float | None = None
) -> Iterator[Unfinished]:
    """Give what a run finished before it was stopped, if it is to be resumed, and keep what is finished inside the block.

    `seconds` are those that the run may take.
    """
    there, key = work.exists(), fingerprint(campaign, log, engine, seconds)
    if resume and not (work / key).is_dir():
        why = "what it kept belongs to another log, model, time or version" if there else "no run was stopped here"
        send_message(f"nothing to resume, {why}: starting from the beginning")
    folder = work / key
    with _at_no_price():
        folder = open_work(work, key)
    unfinished = Unfinished(folder, log, engine)
    try:
        with keep_fits(unfinished):
            yield unfinished
    except BaseException:
        if folder.is_dir() and any(folder.iterdir()):
            send_message("what was finished is kept: the same command with --resume goes on from there")
        raise


def fingerprint(campaign: Campaign, log: Log, engine: Engine, seconds: float | None = None) -> str:
    """Return a digest of all that a fit depends on."""
    plain = replace(campaign, log="", customers=None, planning=Planning(), title="", unit="", out=None)
    plain = replace(plain, response_unit="", response_value=None)
    versions = [__version__, *map(_version_of, COMPUTE)]
    facts = [key_of(campaign, log), plain.text, seconds, type(engine).__name__, *versions]
    return hashlib.blake2b(json.dumps(facts).encode(), digest_size=16).hexdigest()


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@contextmanager
def _at_no_price() -> Iterator[None]:
    """Let the block fail in silence: a run that cannot keep what it has finished still goes on."""
    with suppress(OSError, LargesseError):
        yield
