"""A session is found or started, and what is missing is named."""

import sys
from pathlib import Path
from typing import Any

import pytest

from largesse.errors import MissingPartError
from largesse.pipeline.on_spark import ClusterError, check_parts, open_session
from largesse.pipeline.on_spark.session import explain_failure, find_java


def test_without_pyspark_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingPartError, match=r"pip install 'largesse\[spark\]'"), open_session():
        pass


def test_an_old_pyspark_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pyspark = pytest.importorskip("pyspark")
    monkeypatch.setattr(pyspark, "__version__", "3.5.1")
    with pytest.raises(MissingPartError, match=r"PySpark 3\.5\.1; 4 is needed"):
        check_parts()


@pytest.mark.parametrize("home", ["", "/nowhere"])
def test_without_java_the_error_says_so(home: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", home)
    assert find_java() is None
    with pytest.raises(MissingPartError, match="Spark needs Java, and there is none") as caught, open_session():
        pass
    assert "Java 17" in str(caught.value)


def test_spark_connect_needs_no_java_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    check_parts(needs_java=False)


def test_the_active_session_is_used_and_left_running(session: Any) -> None:
    with open_session() as found:
        assert found is session
    with open_session(session) as found:
        assert found is session
    assert session.range(3).count() == 3


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("Total size of results is bigger than spark.driver.maxResultSize", "rows="),
        ("java.lang.OutOfMemoryError: Java heap space", "spark.executor.memory"),
        ("No module named 'largesse'", "install the same version"),
        ("FileNotFoundError: /work/.spool.1a2b3c4d.part/1.arrow", "all executors share"),
        ("something else", "nothing was written"),
    ],
)
def test_what_spark_says_becomes_a_sentence_with_a_hint(said: str, hint: str) -> None:
    with pytest.raises(ClusterError, match="counting failed") as caught, explain_failure("counting"):
        raise RuntimeError(said)
    assert hint in str(caught.value)


def test_an_error_in_a_worker_is_named_by_its_own_last_line() -> None:
    said = (
        "Job aborted\nTraceback (most recent call last):\n  File 'x.py', line 1\nValueError: no such thing\nat scala.x"
    )
    with pytest.raises(ClusterError, match="counting failed: ValueError: no such thing"), explain_failure("counting"):
        raise RuntimeError(said)
