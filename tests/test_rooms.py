"""The house keeps its order: imports run one way, doors hold only names, heavy packages wait until they are used."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import largesse

SOURCE = Path(largesse.__file__).parent
ROOMS = (
    "errors",
    "records",
    "data",
    "allocate",
    "evaluate",
    "response",
    "policy",
    "banditnet",
    "report",
    "engines",
    "experiments",
    "cli",
)
UNSAFE = {"pickle", "cPickle", "_pickle", "joblib", "cloudpickle", "dill", "shelve", "marshal"}
HEAVY = {
    "sklearn",
    "scipy",
    "numba",
    "pandas",
    "polars",
    "pyarrow",
    "jinja2",
    "rich",
    "jax",
    "optax",
    "causaldata",
    "stochtree",
}
NETWORK = (
    "heads",
    "network",
    "train",
    "hsic",
    "ipm",
    "iterate",
    "cfr_program",
    "gan_program",
)  # response/…: themselves imported only when a network is used
COMPILED = ("changes", "kernels", "partial")  # allocate/…: likewise, when something is allocated


# ---------------------------------------------------------------------------------------------- the checker


def modules(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*.py"))


def imports(tree: ast.AST, path: Path, root: Path) -> Iterator[tuple[str, int]]:
    """Every imported name in full, wherever it is imported, with its line; `from a import b` is `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:  # relative: from the package that many levels up
                package = [root.name, *path.relative_to(root).parts[:-1]]
                base = ".".join([*package[: len(package) - node.level + 1], *([base] if base else [])])
            for alias in node.names:
                yield f"{base}.{alias.name}", node.lineno


def uphill(root: Path) -> list[str]:
    """Every import from a room that is listed below the importing one, or from no room at all."""
    found = []
    for path in modules(root):
        if path == root / "__init__.py":
            continue  # the front door opens every room
        here = path.relative_to(root).parts[0].removesuffix(".py")
        where = f"{path.relative_to(root)}"
        if here not in ROOMS:
            found.append(f"{where}: {here!r} is not a room")
            continue
        for name, line in imports(ast.parse(path.read_text(encoding="utf-8")), path, root):
            first, _, rest = name.partition(".")
            if first != root.name or rest == "__version__":
                continue
            there = rest.partition(".")[0]
            if there not in ROOMS or ROOMS.index(there) > ROOMS.index(here):
                found.append(f"{where}:{line}: {here} imports {name}")
    return found


def not_only_names(root: Path) -> list[str]:
    """Every statement of a room's `__init__.py` that is neither its docstring nor an `X as X` re-export."""
    found = []
    for path in modules(root):
        if path.name != "__init__.py" or path == root / "__init__.py":
            continue
        body = ast.parse(path.read_text(encoding="utf-8")).body
        if not body or ast.get_docstring(ast.Module(body, [])) is None:
            found.append(f"{path.relative_to(root)}: no docstring")
        for node in body[1:]:
            reexport = isinstance(node, ast.ImportFrom) and all(a.name == a.asname for a in node.names)
            if not reexport:
                found.append(f"{path.relative_to(root)}:{node.lineno}")
    return found


def unsafe(root: Path) -> list[str]:
    return [
        f"{path.relative_to(root)}:{line}: {name}"
        for path in modules(root)
        for name, line in imports(ast.parse(path.read_text(encoding="utf-8")), path, root)
        if name.partition(".")[0] in UNSAFE
    ]


def heavy_at_the_top(root: Path) -> list[str]:
    """Every heavy package that is imported as soon as a module is; only for types is fine.

    The modules of the network and the compiled loops may import what they are made of, but nothing may import them at
    once except each other.
    """
    found = []
    network = {root / "response" / f"{name}.py" for name in NETWORK}
    loops = {root / "allocate" / f"{name}.py" for name in COMPILED}
    for path in modules(root):
        allowed = {"jax", "optax"} if path in network else {"numba"} if path in loops else set()
        for node in _at_once(ast.parse(path.read_text(encoding="utf-8")).body):
            for name, line in imports(ast.Module([node], []), path, root):
                first, *rest = name.split(".")
                late = first == root.name and (
                    (rest[0] == "response" and rest[1] in NETWORK and path not in network)
                    or (rest[0] == "allocate" and rest[1] in COMPILED and path not in loops)
                )
                if first in HEAVY - allowed or late:
                    found.append(f"{path.relative_to(root)}:{line}: {name}")
    return found


def _at_once(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run on import: not those of functions, nor those under TYPE_CHECKING."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _at_once(node.orelse)
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.ClassDef | ast.For | ast.While):
            for field in ("body", "orelse", "finalbody"):
                yield from _at_once(getattr(node, field, []))
            for handler in getattr(node, "handlers", []):
                yield from _at_once(handler.body)


# ---------------------------------------------------------------------------------------------- the house


def test_imports_run_one_way() -> None:
    assert uphill(SOURCE) == []


def test_doors_hold_only_names() -> None:
    assert not_only_names(SOURCE) == []


def test_nothing_that_runs_when_opened_is_imported() -> None:
    assert unsafe(SOURCE) == []


def test_heavy_packages_are_imported_when_used() -> None:
    assert heavy_at_the_top(SOURCE) == []


@pytest.mark.parametrize(
    "start", ["import largesse", "import largesse.cli", "import largesse.policy, largesse.engines"]
)
def test_importing_loads_nothing_heavy(start: str) -> None:
    asked = {"sklearn", "scipy", "numba", "pandas", "polars", "jax", "optax", "jinja2"}
    code = f"{start}, sys; print(*sorted({asked!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


# ---------------------------------------------------------------------------------------------- the checker can fail


def house(root: Path, **files: str) -> Path:
    """A small made-up package; a file's name has __ for / and ends without .py."""
    root = root / "largesse"
    for name, text in {"__init__": "", **files}.items():
        path = root / (name.replace("__", "/") if not name.startswith("__") else name)
        path = path.with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    "text",
    [
        "from largesse.policy import Policy",
        "import largesse.policy",
        "from largesse import policy",
        "from ..policy import Policy",
        "from .. import policy",
        "def f():\n    from largesse.policy import Policy",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from largesse.policy import Policy",
        "try:\n    pass\nfinally:\n    import largesse.cli",
        "from largesse import allocate_all",
        "import largesse",
    ],
)
def test_an_uphill_import_is_found(text: str, tmp_path: Path) -> None:
    assert len(uphill(house(tmp_path, allocate__plan=text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "from largesse.errors import Problem",
        "from largesse.allocate.path import steps",
        "from .path import steps",
        "from ..records import Log",
        "from largesse import __version__",
        "import numpy, largesses",
    ],
)
def test_a_downhill_import_is_fine(text: str, tmp_path: Path) -> None:
    assert uphill(house(tmp_path, allocate__plan=text, __init__="from largesse.cli import main")) == []


def test_a_file_outside_every_room_is_found(tmp_path: Path) -> None:
    assert uphill(house(tmp_path, utils="x = 1")) == ["utils.py: 'utils' is not a room"]


@pytest.mark.parametrize(
    "text", ["", "x = 1", '"""Doc."""\nx = 1', '"""Doc."""\nfrom a import b', '"""Doc."""\nfrom a import b as c']
)
def test_a_door_with_more_than_names_is_found(text: str, tmp_path: Path) -> None:
    root = house(tmp_path)
    (root / "data").mkdir()
    (root / "data" / "__init__.py").write_text(text)
    assert not_only_names(root)
    (root / "data" / "__init__.py").write_text('"""Doc."""\nfrom a import b as b\nfrom a import c as c, d as d\n')
    assert not_only_names(root) == []


def test_an_unsafe_import_is_found_even_in_a_function(tmp_path: Path) -> None:
    root = house(tmp_path, policy="def f():\n    import joblib.memory\n    from pickle import loads")
    assert unsafe(root) == ["policy.py:2: joblib.memory", "policy.py:3: pickle.loads"]


def test_a_heavy_import_is_found_only_where_it_runs_at_once(tmp_path: Path) -> None:
    text = """
from typing import TYPE_CHECKING
import numpy
if TYPE_CHECKING:
    import pandas
else:
    import polars
try:
    from scipy.optimize import minimize
except ImportError:
    import jax
def f():
    import sklearn
class C:
    import numba
"""
    found = [line.rpartition(" ")[2] for line in heavy_at_the_top(house(tmp_path, data__read=text))]
    assert found == ["polars", "scipy.optimize.minimize", "jax", "numba"]


def test_only_the_network_imports_jax_at_once_and_only_it_imports_itself_at_once(tmp_path: Path) -> None:
    inside = "import jax.numpy\nimport optax\nfrom largesse.response.heads import scores\n"
    later = "def f():\n    from largesse.response.train import train\n"
    assert heavy_at_the_top(house(tmp_path / "good", response__train=inside, response__sire=later)) == []
    for name, text in (
        ("response__sire", "import jax"),
        ("data__train", "import optax"),
        ("response__train", "import sklearn"),
        ("response__sire", "from largesse.response.train import train"),
        ("response__sire", "from largesse.response import network"),
        ("response__sire", "import largesse.response.hsic"),
    ):
        assert len(heavy_at_the_top(house(tmp_path / f"{name}{len(text)}", **{name: text}))) == 1
