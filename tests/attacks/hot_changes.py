"""What changes under a service while it answers: its policy's file, its campaign, and the ledger's file.

A policy that cannot be served does not take over; one that can decides as it does when it is loaded by itself. A ledger that
is taken away, replaced or has no room gives nothing, and what it did give is found in its file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from commands import own_folder
from harness import FINE, Outcome
from knocks import knock
from loops import KINDS, customers_of, policy_of, ran
from mutations import change
from policies import change_array
from serve_requests import SOUND, TOKEN, judge, send

Rng = np.random.Generator
ROUNDS = 5
REFUSALS = {400, 409}


def attack(seed: int) -> Outcome:
    """Change what a service stands on, and ask it each time."""
    rng = np.random.default_rng([seed, 83])
    kind = ("plain", "coupons")[seed // 2 % 2]
    with own_folder() as folder, ExitStack() as stack:
        shutil.copytree(ran(kind), folder / "run")
        service = Served(folder, kind, stack, booked=bool(seed % 2))
        for _ in range(ROUNDS):
            found = service.change_policy(rng) or service.ask(rng)
            if found is not None:
                return found
        return (service.take_ledger(rng) if seed % 2 else None) or FINE


class Served:
    """A service over a run folder of its own."""

    def __init__(self, folder: Path, kind: str, stack: ExitStack, *, booked: bool) -> None:
        from largesse.serve import AuthMiddleware, LedgerSettings, Settings
        from largesse.serve.app import load_service, make_app

        self.kind, self.file, self.ledger = kind, folder / "run" / "policy.largesse", folder / "l.db"
        book = LedgerSettings(f"sqlite:///{self.ledger}", "500", "2999-12-31", customers=100.0) if booked else None
        settings = Settings(folder / "run", ledger=book, quiet=True)
        self.service = load_service(settings)
        stack.callback(self.service.close)
        self.watched = self.service.store
        self.app = AuthMiddleware(make_app(self.service), settings.access(TOKEN, 8000))
        self.booked, self.asked = booked, 0

    def change_policy(self, rng: Rng) -> Outcome | None:
        """Put something else in the place of the policy; what is refused changes nothing, what is not is what decides."""
        before = self.watched.current.version
        how = CHANGES[rng.integers(len(CHANGES))]
        how(self.file, self.kind, rng)
        self.watched.refresh()
        now, problem = self.watched.current.version, self.watched.problem
        health = knock(self.app, "/healthz", headers=SOUND)
        said = health.json
        if health.status != 200 or said["policy"] != now or (said["status"] == "outdated") != (problem is not None):
            return Outcome("wrong", f"{how.__name__}: health {said}, but {now} decides")
        if problem is not None and (now != before or not str(problem).strip()):
            return Outcome("wrong", f"{how.__name__}: {now} decides after {problem!r}")
        if problem is None and self.file.is_file() and now != digest(self.file):
            return Outcome("wrong", f"{how.__name__}: {now} decides, the file is {digest(self.file)}")
        return None

    def ask(self, rng: Rng) -> Outcome | None:
        """Ask for some customers: decisions are those of the policy that is said to decide."""
        rows = customers_of("own costs" if rng.random() < 0.2 else self.kind)
        chosen = [dict(rows[i]) for i in rng.permutation(len(rows))[:3]]
        self.asked += 1
        answer = send(self.app, "/v1/decide", {"request_id": f"r{self.asked}", "customers": chosen})
        if answer.status != 200:
            return check_refusal(answer, REFUSALS)
        said, policy = answer.json, self.watched.current.policy
        if said["policy"] != self.watched.current.version:
            return Outcome("wrong", f"{said['policy']} is said to decide, {self.watched.current.version} does")
        wanted = policy.expect(self.watched.current.encode(chosen))
        for at, one in enumerate(said["decisions"]):
            level = one["level_number"]
            near = (wanted.responses[at, level], self.at_most(policy.levels, level, wanted.costs[at, level]))
            if not np.allclose((one["expected_response"], one["expected_cost"]), near, rtol=1e-9, atol=2e-6):
                return Outcome("wrong", f"{one} instead of {near}")
            if one["level"] != policy.levels.labels[level] or not 0 < one["propensity"] <= 1 + 1e-9:
                return Outcome("wrong", str(one))
        return None

    def at_most(self, levels: Any, level: int, cost: float) -> float:
        """Return a cost as a ledger counts it: of what is paid on redemption, never more than the face value."""
        if not self.booked or not levels.on_redemption:
            return cost
        return min(cost, levels.costs[level] + (levels.contact_cost if level else 0.0))

    def take_ledger(self, rng: Rng) -> Outcome | None:
        """Do something to the ledger's file. What is decided after that is in the file, or it is refused with 503."""
        from largesse.errors import LargesseError
        from largesse.serve import open_ledger

        how = TAKEN[rng.integers(len(TAKEN))]
        if rng.random() < 0.3:
            self.service.ledger._store.disconnect()
        there = {path.name for path in self.ledger.parent.iterdir()}
        how(self.ledger, rng)
        kept = {path.name for path in self.ledger.parent.iterdir()}
        decided = []
        for _ in range(3):
            self.asked += 1
            body = {"request_id": f"t{self.asked}", "customers": [dict(customers_of(self.kind)[self.asked])]}
            answer = send(self.app, "/v1/decide", body)
            if answer.status == 200:
                decided.append(body["request_id"])
            elif answer.status != 503 and (found := check_refusal(answer, REFUSALS)) is not None:
                return Outcome(found.kind, f"{how.__name__}: {found.detail}")
        made = {path.name for path in self.ledger.parent.iterdir()} - there - kept
        if made - {"l.db-wal", "l.db-shm"}:
            return Outcome("half-written", f"{how.__name__}: {sorted(made)}")
        self.service.ledger.close()
        try:
            with open_ledger(f"sqlite:///{self.ledger}") as ledger:
                found = {row[0] for row in ledger.decisions()}
                fine = ledger.audit().fine
        except LargesseError as error:
            return Outcome("wrong", f"{how.__name__}: {decided} were decided, but {error}") if decided else None
        if not fine or set(decided) - found:
            return Outcome("wrong", f"{how.__name__}: {sorted(set(decided) - found)} were decided and are not kept")
        return None


def check_refusal(answer: Any, allowed: set[int]) -> Outcome | None:
    found = judge(answer, allowed)
    return None if found.good else found


def digest(path: Path) -> str:
    """Return the version that a policy's file has."""
    from largesse.serve.policy_store import DIGITS

    return hashlib.sha256(path.read_bytes()).hexdigest()[:DIGITS]


# -- what is done to a policy's file --------------------------------------------------------------------------------------


def clear(path: Path) -> None:
    """Take away whatever is at a path."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def put(path: Path, raw: bytes, rng: Rng) -> None:
    """Write a file in one step, or in place."""
    if rng.random() < 0.5 or path.is_symlink() or path.is_dir():
        path.with_suffix(".new").write_bytes(raw)
        clear(path)
        path.with_suffix(".new").replace(path)
    else:
        path.write_bytes(raw)


def put_another(path: Path, kind: str, rng: Rng) -> None:
    """Put a sound policy there: this shop's, or another's."""
    other = sorted(KINDS)[rng.integers(len(KINDS))] if rng.random() < 0.6 else kind
    put(path, (ran(other) / "policy.largesse").read_bytes(), rng)


def put_damaged(path: Path, kind: str, rng: Rng) -> None:
    """Put a file there that was cut or flipped."""
    raw = bytearray((ran(kind) / "policy.largesse").read_bytes())
    if rng.random() < 0.5:
        raw = raw[: rng.integers(len(raw))]
    else:
        for _ in range(int(rng.integers(1, 20))):
            raw[rng.integers(len(raw))] = rng.integers(256)
    put(path, bytes(raw), rng)


def put_sealed(path: Path, kind: str, rng: Rng) -> None:
    """Put a file there whose digests are right and whose content is not."""
    from largesse.io import archive
    from largesse.policy import policy

    manifest, arrays = policy_of(kind)._state()
    for _ in range(1 + int(rng.integers(2))):
        if rng.random() < 0.4:
            arrays = change_array(arrays, rng)
        else:
            manifest = change(manifest, rng)
    try:
        put(path, archive._pack(policy.FORMAT, manifest, arrays), rng)
    except (ValueError, RecursionError, TypeError):  # no file can hold this
        return


def put_nothing(path: Path, _kind: str, rng: Rng) -> None:
    """Take the file away, or put there what is no file."""
    clear(path)
    how = rng.integers(5)
    if how == 0:
        path.mkdir()
    elif how == 1:
        path.symlink_to("nowhere")
    elif how == 2:
        path.symlink_to(path.name)
    elif how == 3:
        path.touch()


def change_campaign(path: Path, _kind: str, rng: Rng) -> None:
    """Damage the campaign beside the policy, and touch the policy."""
    file = path.parent / "campaign.toml"
    lines = file.read_text(encoding="utf-8").splitlines()
    at = int(rng.integers(len(lines)))
    lines[at] = str(rng.choice(["", "x", "[plan]", "budget = nan", 'customer = "age"', "caps = 5", "\x00"]))
    file.write_text("\n".join(lines), encoding="utf-8")
    if path.is_file():
        os.utime(path, ns=(0, int(rng.integers(2**40))))


CHANGES: tuple[Callable[[Path, str, Rng], None], ...] = (
    *(put_another, put_another, put_damaged, put_sealed, put_sealed, put_nothing, change_campaign),
)

# -- what is done to a ledger's file --------------------------------------------------------------------------------------


def delete(path: Path, rng: Rng) -> None:
    """Delete the file, what lies beside it, or both."""
    names = (("",), ("-wal",), ("-shm",), ("", "-wal", "-shm"), ("-wal", "-shm"))[rng.integers(5)]
    for name in names:
        Path(f"{path}{name}").unlink(missing_ok=True)


def move(path: Path, rng: Rng) -> None:
    """Move the file away, and perhaps back again."""
    path.rename(path.with_suffix(".old"))
    if rng.random() < 0.5:
        path.with_suffix(".old").rename(path)


def replace(path: Path, rng: Rng) -> None:
    """Put a copy, another ledger or something else in the place of the file."""
    from largesse.serve import make_terms, open_ledger

    new, how = path.with_suffix(".new"), rng.integers(4)
    if how == 0:
        shutil.copy(path, new)
    elif how == 1:
        open_ledger(f"sqlite:///{new}", make_terms(10**6, "2999-12-31")).close()
    else:
        new.write_bytes(b"" if how == 2 else bytes(rng.integers(0, 256, 5000, dtype=np.uint8)))
    new.replace(path)


def put_folder(path: Path, _: Rng) -> None:
    """Put a folder in the place of the file."""
    path.unlink()
    path.mkdir()


def leave(_path: Path, _rng: Rng) -> None:
    """Do nothing."""


TAKEN: tuple[Callable[[Path, Rng], None], ...] = (delete, delete, move, replace, replace, put_folder, leave)
