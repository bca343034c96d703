"""Imports follow the order of the packages and use only their `__init__`; heavy libraries are imported when used."""

import ast
import importlib
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import largesse
import largesse_lab
from largesse.campaign import read_campaign
from largesse.data import Encoder, read_table
from largesse.errors import MissingPackageError
from largesse.pipeline import plan, run
from largesse.policy import Policy
from largesse.response import Linear

PRODUCT = Path(largesse.__file__).parent
LAB = Path(largesse_lab.__file__).parent
# A package imports only from those before it: the order in which a row passes through them.
PACKAGE_ORDER = (
    *("version", "errors", "levels", "records", "progress", "io", "stats", "data", "propensity"),
    *("response", "allocation", "worlds", "evaluation", "exploration", "policy", "monitoring", "report"),
    *("campaign", "pipeline"),
    *("serve", "studio", "cli", "__main__"),
)
# Opening a file with one of these can run code that the file brings along.
UNSAFE = {"pickle", "cPickle", "_pickle", "joblib", "cloudpickle", "dill", "shelve", "marshal"}
HEAVY = {
    "sklearn",
    "scipy",
    "numba",
    "pandas",
    "polars",
    "jax",
    "optax",
    "jinja2",
    "matplotlib",
    "stochtree",
    "pyspark",
    "fastapi",
    "uvicorn",
    "psycopg",
    "onnx",
    "sqlglot",
}


def modules(root: Path) -> list[Path]:
    return sorted(root.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to((LAB if LAB in path.parents else PRODUCT).parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[tuple[str, str, int]]:
    """Yield every import of a file, inside functions too: the module, the imported name ("" for a whole module), the line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "", node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            yield from ((node.module or "", alias.name, node.lineno) for alias in node.names)


def package_of(path: Path) -> str:
    return path.relative_to(PRODUCT).parts[0].removesuffix(".py")


def inner_imports() -> Iterator[tuple[Path, str, str, int]]:
    """Yield the product's imports of itself, except for those of `largesse/__init__.py`."""
    for path in modules(PRODUCT):
        for module, name, line in imports(path):
            if module.split(".")[0] == "largesse" and path != PRODUCT / "__init__.py":
                yield path, module, name, line


def test_every_file_lies_in_a_package() -> None:
    assert {package_of(path) for path in modules(PRODUCT)} <= {*PACKAGE_ORDER, "__init__"}


def test_imports_follow_the_order_of_packages() -> None:
    uphill = []
    for path, module, name, line in inner_imports():
        there = [*module.split("."), name][1]
        if there not in PACKAGE_ORDER or PACKAGE_ORDER.index(there) > PACKAGE_ORDER.index(package_of(path)):
            uphill.append(f"{path.relative_to(PRODUCT)}:{line}: {module} {name}")
    assert uphill == []


def test_other_packages_are_imported_through_their_init() -> None:
    deep = [
        f"{path.relative_to(PRODUCT)}:{line}: {module}"
        for path, module, _, line in inner_imports()
        if module.count(".") > 1 and module.split(".")[1] != package_of(path)
    ]
    assert deep == []


def test_the_report_computes_nothing() -> None:
    """It imports records and what formats them, inside functions too: every number is made before."""
    allowed = {"errors", "levels", "version", "records", "progress", "io", "report"}
    other = [
        f"{path.relative_to(PRODUCT)}:{line}: {module}"
        for path, module, name, line in inner_imports()
        if package_of(path) == "report" and [*module.split("."), name][1] not in allowed
    ]
    assert other == []


def test_the_lab_imports_the_product_through_its_packages() -> None:
    deep = [
        f"{path.relative_to(LAB)}:{line}: {module}"
        for path in modules(LAB)
        for module, _, line in imports(path)
        if module.startswith("largesse.") and module.count(".") > 1 and module != "largesse.response.networks"
    ]
    assert deep == []


def test_the_product_does_not_need_the_lab() -> None:
    asked = {
        path.relative_to(PRODUCT).as_posix()
        for path in modules(PRODUCT)
        for module, _, _ in imports(path)
        if module.startswith("largesse_lab")
    }
    assert asked == set()


def test_no_imports_are_circular() -> None:
    """Imports inside functions count: a cycle hidden in one is still a cycle."""
    known = {module_name(path): path for root in (PRODUCT, LAB) for path in modules(root)}
    needs: dict[str, set[str]] = {}
    for here, path in known.items():
        if path.name == "__init__.py":
            continue  # it imports the names of its modules
        needs[here] = {
            there
            for module, name, _ in imports(path)
            for there in (f"{module}.{name}" if f"{module}.{name}" in known else module,)
            if there in known and known[there].name != "__init__.py"
        }
    while free := {here for here, there in needs.items() if not there & needs.keys()}:
        needs = {here: there for here, there in needs.items() if here not in free}
    assert sorted(needs) == []


@pytest.mark.parametrize(
    "init",
    [
        path
        for root in (PRODUCT, LAB)
        for path in modules(root)
        if path.name == "__init__.py" and path.parent != PRODUCT
    ],
)
def test_an_init_holds_a_paragraph_and_names(init: Path) -> None:
    body = ast.parse(init.read_text(encoding="utf-8")).body
    assert ast.get_docstring(ast.Module(body, []))
    for node in body[1:]:
        assert isinstance(node, ast.ImportFrom), f"{init}:{node.lineno}"
        assert all(alias.name == alias.asname for alias in node.names), f"{init}:{node.lineno}"


def test_the_front_loads_each_documented_name_when_it_is_used() -> None:
    tree = ast.parse((PRODUCT / "__init__.py").read_text(encoding="utf-8"))
    typed = {
        name.name: str(node.module)
        for block in tree.body
        if isinstance(block, ast.If)
        for node in ast.walk(block)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert typed == largesse._MODULE_OF  # editors and type checkers see the same names
    assert set(typed) <= set(dir(largesse))
    for name in typed:
        assert getattr(largesse, name) is not None
    with pytest.raises(AttributeError, match="'Polocy'"):
        getattr(largesse, "Polocy")  # noqa: B009 — not known to the type checker


def test_a_record_is_drawn_before_the_report_is_imported() -> None:
    code = "import largesse as lg; lg.frontier([[0.1, 0.2], [0.1, 0.4]], [0, 1]).plot()"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_that_moved_to_the_lab_say_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in largesse._MOVED.items():
        assert getattr(largesse, name) is getattr(importlib.import_module(module), name)
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            with pytest.raises(MissingPackageError, match=rf"{module}\.{name}"):
                getattr(largesse, name)


def test_importing_the_product_loads_next_to_nothing() -> None:
    code = "import sys, largesse; print(sum(name.split('.')[0] == 'largesse' for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 10


def packages() -> list[ModuleType]:
    names = [module_name(path) for root in (PRODUCT, LAB) for path in modules(root) if path.name == "__init__.py"]
    return [importlib.import_module(name) for name in names]


@pytest.mark.parametrize("package", packages(), ids=lambda package: package.__name__)
def test_no_module_has_the_name_of_an_export(package: ModuleType) -> None:
    inside = {path.stem for path in Path(str(package.__file__)).parent.iterdir()} - {"__init__"}
    shadowed = [name for name in inside if not inspect.ismodule(getattr(package, name, package))]
    assert shadowed == []


def test_nothing_that_runs_when_opened_is_imported() -> None:
    found = [
        f"{path}:{line}"
        for root in (PRODUCT, LAB)
        for path in modules(root)
        for module, _, line in imports(path)
        if module.split(".")[0] in UNSAFE
    ]
    assert found == []


@pytest.mark.parametrize(
    "start",
    ["largesse", "largesse.cli", *(f"largesse.{package}" for package in PACKAGE_ORDER if (PRODUCT / package).is_dir())],
)
def test_importing_loads_nothing_heavy(start: str) -> None:
    code = f"import sys, {start}; print(*sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def record_calls(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, key: Callable[..., Any]) -> list[Any]:
    """Let a function or method note a key of its arguments whenever it is called, and do its work."""
    calls, work = [], getattr(owner, name)

    def noted(*given: Any, **named: Any) -> Any:
        calls.append(key(*given, **named))
        return work(*given, **named)

    monkeypatch.setattr(owner, name, noted)
    return calls


def test_a_run_computes_everything_once(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from largesse.evaluation import frontier_estimate, log_checks, policy_estimates, policy_evaluation

    def table_key(_encoder: Any, table: Any, target: Any, **how: Any) -> tuple[Any, ...]:
        return tuple(table.column("since").to_pylist()), target.tobytes(), how.get("discrete", False)

    planned = record_calls(
        monkeypatch, frontier_estimate, "allocate", lambda curves, _, budget: (curves.tobytes(), budget)
    )
    encoded = record_calls(monkeypatch, Encoder, "fit_transform", table_key)
    fitted = record_calls(monkeypatch, Linear, "_learn", lambda _model, _X, log: log.fingerprint)
    overlaps = record_calls(monkeypatch, log_checks, "measure_overlap", lambda *_: None)
    uniform, cheapest = (
        record_calls(monkeypatch, module, "measure_level_influence", lambda _, level, __: level)
        for module in (policy_estimates, policy_evaluation)
    )
    loaded = record_calls(monkeypatch, Policy, "load", lambda path: path)
    run(read_campaign(shop), shop / "run")
    points = read_table(str(shop / "run" / "frontier.parquet"))
    # Every budget of the frontier in every one of five folds.
    assert len(set(planned)) == len(planned) == 5 * len(points)
    # Once each for the response, for the levels, and for the comparison of customers with the log.
    assert len(set(encoded)) == len(encoded) == 3
    assert len(set(fitted)) == len(fitted) == 6
    assert len(overlaps) == 1
    assert cheapest + uniform == [0, 1, 2]
    assert loaded == []


def test_a_plan_reads_the_policy_once(run_copy: Path, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = record_calls(monkeypatch, Policy, "load", lambda path: path)
    plan(run_copy, str(shop / "customers.parquet"), budget=1.0)
    assert loaded == [run_copy / "policy.largesse"]
