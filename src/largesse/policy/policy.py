"""A response model and a price: a rule for customers not seen yet, and the small file it is kept in.

The file is a zip of `manifest.json` and `arrays.safetensors`: numbers and text, nothing that runs when it is opened.
Everything in it has a digest, and it is refused when a digest, a version or a name is not as expected.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from largesse.allocation import allocate, at_price, expected_costs, exploring_budget
from largesse.data import read_customers
from largesse.errors import NotFittedError, PolicyFileError, Problem, nearest, refuse
from largesse.files import atomic_file
from largesse.levels import Levels
from largesse.records import Array, Customers, Decisions, Log
from largesse.response import ResponseModel, kinds

FORMAT, VERSION = "largesse-policy", 1
MANIFEST, ARRAYS = "manifest.json", "arrays.safetensors"
KNOWN = kinds()


class Policy:
    """Who gets which level: the best of expected response − price × expected cost.

    Parameters
    ----------
    model
        A fitted response model.
    levels
        The levels and their costs.
    price
        Response given up per unit of cost; `plan.price` of a plan for a like set of customers, or set by `calibrate`.
    explore
        The share of customers who get a level by chance, all levels alike, so that the next log can be learnt from.
    share
        Where two levels are worth the same at the price, the chance of the dearer one; set by `calibrate`.

    >>> from largesse.worlds import simulate
    >>> from largesse.response import Linear
    >>> sim = simulate("averaged", n=500)
    >>> policy = Policy(Linear().fit(sim.log), sim.log.levels, price=0.045)
    >>> policy.decide(sim.features).shape
    (500,)
    """

    def __init__(
        self,
        model: ResponseModel,
        levels: Levels,
        price: float | None = None,
        *,
        explore: float = 0.0,
        share: float = 0.0,
    ) -> None:
        learnt = getattr(model, "levels_", len(levels))
        if learnt != len(levels):
            got = f"the model was fitted with {learnt} levels, but {len(levels)} are given"
            refuse("policy", [Problem(got, "give the levels of the log it was fitted on: log.levels")])
        self.model = model
        self.levels = levels
        chances = {"explore": explore, "share": share}
        refuse(
            "policy",
            [
                Problem(f"{word} is {p!r}", "give a chance, from 0 to 1")
                for word, p in chances.items()
                if not 0 <= p <= 1
            ],
        )
        self.price = price
        self.explore = float(explore)
        self.share = float(share)

    def __repr__(self) -> str:
        mixed = f", explore={self.explore:g}" if self.explore else ""
        return f"Policy({self.model!r}, {len(self.levels)} levels, price={self.price}{mixed})"

    def calibrate(self, customers: Any, budget: float, *, explore: float | None = None) -> Policy:
        """Set the price at which customers like these cost `budget` on average, and return the policy.

        What exploring costs is part of the budget.
        """
        if explore is not None:
            self.explore = Policy(self.model, self.levels, explore=explore).explore
        curves, costs = self._expected(customers)
        wide = np.broadcast_to(costs, curves.shape)
        goal = exploring_budget(wide, budget, self.explore)
        if self.explore == 1:
            self.price, self.share = 0.0, 0.0
            return self
        self.price = allocate(curves, costs, goal).price
        rows = np.arange(len(curves))
        low, high = (
            float(wide[rows, at_price(curves, costs, self.price, dearest=dearest)].mean()) for dearest in (False, True)
        )
        self.share = min(max((goal - low) / (high - low), 0.0), 1.0) if high > low and self.price > 0 else 0.0
        return self

    def chances(self, customers: Any) -> Array:
        """Return the probability (n, K) with which each customer gets each level."""
        price = self._price()
        curves, costs = self._expected(customers)
        rows, K = np.arange(len(curves)), len(self.levels)
        chances = np.full(curves.shape, self.explore / K)
        chances[rows, at_price(curves, costs, price)] += (1 - self.explore) * (1 - self.share)
        if self.share:
            chances[rows, at_price(curves, costs, price, dearest=True)] += (1 - self.explore) * self.share
        elif not self.explore:
            return np.rint(chances)
        return chances

    def offer(self, customers: Any, *, seed: int = 0) -> Decisions:
        """Draw a level for each customer, and say with which probability: write both into the next log."""
        chances = self.chances(customers)
        draw = np.random.default_rng(seed).random(len(chances))
        levels = (chances.cumsum(axis=1) <= draw[:, None]).sum(axis=1).clip(max=len(self.levels) - 1)
        return Decisions(levels, chances[np.arange(len(chances)), levels])

    def decide(self, customers: Any) -> Array:
        """Return the level (n,) of each of the customers: `Customers`, a `Log`, a table, a path or an array (n, p).

        The best at the price, without chance: `offer` explores.
        """
        price = self._price()
        return at_price(*self._expected(customers), price)

    def _price(self) -> float:
        if self.price is None:
            hint = "calibrate it, or plan first: Policy(model, levels, price=plan.price)"
            raise NotFittedError("policy", [Problem("it has no price yet", hint)])
        return self.price

    def _expected(self, customers: Any) -> tuple[Array, Array]:
        """Return the expected responses (n, K) and costs (K,) or (n, K) of customers in any form."""
        if isinstance(customers, Log):
            customers = Customers(customers.features, None, customers.costs)
        if not isinstance(customers, Customers) and (
            self.levels.cost_columns or isinstance(customers, str | os.PathLike)
        ):
            customers = read_customers(customers, levels=self.levels)
        curves = self.model.predict(customers)
        costs = customers.costs if isinstance(customers, Customers) else None
        return curves, expected_costs(self.levels, curves, costs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to one file; the same policy gives the same bytes."""
        content = self._bytes()
        with atomic_file(path) as part:
            part.write_bytes(content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a policy file, and refuse it unless everything in it is known and whole."""
        return _read(Path(path))

    def _bytes(self) -> bytes:
        state, arrays = self.model.state()
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "levels": _kept_levels(self.levels),
            "price": self.price,
            "explore": self.explore,
            "share": self.share,
            "model": state,
        }
        return sealed(manifest, arrays)


def _kept_levels(levels: Levels) -> dict[str, Any]:
    return {
        "costs": levels.costs,
        "names": levels.names,
        "doses": levels.doses,
        "on_redemption": levels.on_redemption,
        "contact_cost": levels.contact_cost,
    }


def sealed(manifest: dict[str, Any], arrays: dict[str, Array]) -> bytes:
    """Return a manifest and arrays as one file's bytes, with their digests; the same content is the same bytes."""
    from safetensors.numpy import save

    blob = save({name: array.copy() for name, array in sorted(arrays.items())})
    manifest = {**manifest, "arrays": hashlib.sha256(blob).hexdigest()}
    manifest["digest"] = _digest(manifest)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in (
            (MANIFEST, json.dumps(manifest, sort_keys=True, ensure_ascii=False).encode()),
            (ARRAYS, blob),
        ):
            # A fixed date: the same policy is the same file.
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _digest(manifest: dict[str, Any]) -> str:
    rest = {key: value for key, value in manifest.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def refused(path: Path, what: str, hint: str) -> PolicyFileError:
    """Return the error that says what is wrong with a file."""
    return PolicyFileError("policy", [Problem(f"{path} {what}", hint)])


def opened(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the manifest and arrays of a file of the given format, refused unless it is whole."""
    from safetensors.numpy import load

    damaged = "it was changed or cut off after it was written: fit again, or fetch the file anew"
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(archive.read(MANIFEST))
            blob = archive.read(ARRAYS)
    except FileNotFoundError as error:
        raise refused(path, "does not exist", "largesse fit writes one into its run folder") from error
    except Exception as error:  # damaged bytes make zipfile and its decompressors raise almost anything
        raise refused(path, "is not a policy file, or is damaged", damaged) from error
    if not isinstance(manifest, dict) or manifest.get("format") != kind:
        raise refused(path, "is not a policy file", "largesse fit writes one into its run folder")
    if manifest.get("version") != VERSION:
        raise refused(
            path,
            f"has version {manifest.get('version')}; this largesse reads version {VERSION}",
            "fit again with this version, or use the one that wrote it",
        )
    if manifest.get("digest") != _digest(manifest) or manifest.get("arrays") != hashlib.sha256(blob).hexdigest():
        raise refused(path, "does not match its own digest", damaged)
    try:
        return manifest, load(blob)
    except Exception as error:
        raise refused(path, f"holds something that is not expected ({error})", "fit again with this version") from error


def _read(path: Path) -> Policy:
    manifest, arrays = opened(path, FORMAT)
    try:
        kind = manifest["model"]["kind"]
        if kind not in KNOWN:
            raise refused(path, f"holds a model of kind {kind!r}", nearest(str(kind), KNOWN))
        model = KNOWN[kind].from_state(manifest["model"], arrays)
        chance = {word: manifest.get(word, 0.0) for word in ("explore", "share")}
        return Policy(model, Levels(**manifest["levels"]), manifest["price"], **chance)
    except PolicyFileError:
        raise
    except Exception as error:  # a digest shows damage, not ill will: what is written may still be anything
        raise refused(path, f"holds something that is not expected ({error})", "fit again with this version") from error
