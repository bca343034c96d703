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

from largesse.allocate import at_price, expected_costs
from largesse.data import read_customers
from largesse.data.write import atomic_file
from largesse.errors import NotFittedError, PolicyFileError, Problem, nearest, refuse
from largesse.records import Array, Customers, Levels, Log
from largesse.response import ResponseModel
from largesse.response.kinds import kinds

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
        Response given up per unit of cost; `plan.price` of a plan for a like set of customers.

    >>> from largesse.data import simulate
    >>> from largesse.response import Linear
    >>> sim = simulate("averaged", n=500)
    >>> policy = Policy(Linear().fit(sim.log), sim.log.levels, price=0.045)
    >>> policy.decide(sim.features).shape
    (500,)
    """

    def __init__(self, model: ResponseModel, levels: Levels, price: float | None = None) -> None:
        learnt = getattr(model, "levels_", len(levels))
        if learnt != len(levels):
            got = f"the model was fitted with {learnt} levels, but {len(levels)} are given"
            refuse("policy", [Problem(got, "give the levels of the log it was fitted on: log.levels")])
        self.model = model
        self.levels = levels
        self.price = price

    def __repr__(self) -> str:
        return f"Policy({self.model!r}, {len(self.levels)} levels, price={self.price})"

    def decide(self, customers: Any) -> Array:
        """Return a level (n,) for each of the customers: `Customers`, a `Log`, a table, a path or an array (n, p)."""
        if self.price is None:
            hint = "plan first: Policy(model, levels, price=plan.price)"
            raise NotFittedError("policy", [Problem("it has no price yet", hint)])
        if isinstance(customers, Log):
            customers = Customers(customers.features, None, customers.costs)
        if not isinstance(customers, Customers) and (
            self.levels.cost_columns or isinstance(customers, str | os.PathLike)
        ):
            customers = read_customers(customers, levels=self.levels)
        curves = self.model.predict(customers)
        costs = customers.costs if isinstance(customers, Customers) else None
        return at_price(curves, expected_costs(self.levels, curves, costs), self.price)

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
            "model": state,
        }
        return sealed(manifest, arrays)


def _kept_levels(levels: Levels) -> dict[str, Any]:
    return {
        "costs": levels.costs,
        "names": levels.names,
        "doses": levels.doses,
        "on_redemption": levels.on_redemption,
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
        return Policy(model, Levels(**manifest["levels"]), manifest["price"])
    except PolicyFileError:
        raise
    except Exception as error:  # a digest shows damage, not ill will: what is written may still be anything
        raise refused(path, f"holds something that is not expected ({error})", "fit again with this version") from error
