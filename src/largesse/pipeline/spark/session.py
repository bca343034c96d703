"""Spark sessions, and explanations of Spark's errors."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from largesse.errors import LargesseError, MissingPackageError, Problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSTALL = "pip install 'largesse[spark]'"
INSTALL_CONNECT = "pip install 'pyspark[connect]'"  # the parts of a client of Spark Connect
JAVA = "install Java 17 or 21 (Debian: default-jre-headless), or set JAVA_HOME"
SPARK_SETTINGS = {  # of a session that is started here; a session of the user keeps its own
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
}
JVM = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # Java mostly copies bytes: compiling less halves its CPU time, measured
)
LOCAL_ADDRESSES = {  # no other machine takes part
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": JVM,
    "spark.executor.extraJavaOptions": JVM,
}
MAX_CAUSE = 300  # characters of Spark's message that an error repeats


class ClusterError(LargesseError, RuntimeError):
    """Failure of Spark, such as lost executors or too little memory."""


@contextmanager
def open_spark_session(given: Any = None, master: str | None = None) -> Iterator[SparkSession]:
    """Yield the given or the active Spark session, or a new session that ends with the context."""
    check_spark(needs_java=given is None and not (master or "").startswith("sc://"))
    if given is not None:
        yield given
        return
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession() if master is None else None
    if active is not None:
        yield active
        return
    session = _start_session(master)
    try:
        yield session
    finally:
        session.stop()


def check_spark(*, needs_java: bool = True) -> None:
    """Raise an error if PySpark 4, or Java for a new driver, is not installed."""
    try:
        with suppress_version_warnings():
            import pandas  # noqa: F401 - PySpark imports it
            import pyspark
    except ModuleNotFoundError as missing:
        problem = Problem(f"the package {missing.name!r} is not installed", INSTALL)
        raise MissingPackageError("spark", [problem]) from missing
    if int(pyspark.__version__.split(".")[0]) < 4:
        raise MissingPackageError("spark", [Problem(f"this is PySpark {pyspark.__version__}; 4 is needed", INSTALL)])
    if needs_java and not find_java():
        raise MissingPackageError("spark", [Problem("Java is not installed", JAVA)])


def find_java() -> str | None:
    """Return the path of Java from JAVA_HOME or the search path, or None."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")


def _start_session(master: str | None) -> SparkSession:
    """Start a Spark session on a master; without one, by the installation's settings or on all local cores."""
    from pyspark.sql import SparkSession

    if master is None and not {"SPARK_HOME", "SPARK_CONF_DIR"} & set(os.environ):
        master = "local[*]"
    builder = SparkSession.builder.appName("largesse")
    if master is not None and master.startswith("sc://"):
        builder = builder.remote(master)
    else:
        local = master is not None and master.startswith("local")
        builder = builder if master is None else builder.master(master)
        for name, value in (SPARK_SETTINGS | (LOCAL_ADDRESSES if local else {})).items():
            builder = builder.config(name, value)
        if local:  # workers on this machine run the same Python, with the same packages
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        with suppress_version_warnings():
            session: SparkSession = builder.getOrCreate()
    except Exception as error:
        hint = f"is {master!r} a master that can be reached? Else {JAVA}" if master else JAVA
        if "PACKAGE_NOT_INSTALLED" in str(error):
            hint = INSTALL_CONNECT
        raise ClusterError("spark", [Problem(f"Spark did not start: {read_first_error_line(error)}", hint)]) from error
    return session


@contextmanager
def suppress_version_warnings() -> Iterator[None]:
    """Suppress PySpark's warnings about the versions of other packages."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def explain_spark_failure(doing: str) -> Iterator[None]:
    """Convert an error of Spark into an error of one sentence with a remedy."""
    try:
        with suppress_version_warnings():
            yield
    except (LargesseError, OSError, MemoryError):
        raise
    except Exception as error:
        raise ClusterError(
            "spark", [Problem(f"{doing} failed: {_find_cause(error)}", _find_remedy(str(error)))]
        ) from error


def _find_remedy(message: str) -> str:
    if "maxResultSize" in message:
        return "raise spark.driver.maxResultSize"
    if "OutOfMemory" in message or "Java heap space" in message:
        return "give the driver or the executors more memory (spark.driver.memory, spark.executor.memory)"
    if "No module named 'largesse'" in message:
        return "install the same version of largesse on the executors"
    if "there is no file" in message or "No such file or directory" in message:
        return "the executors do not see this file: give a table, or an address that Spark reads, like s3a://shop/customers"
    return "nothing was written; look into Spark's own log, and run again"


def _find_cause(error: Exception) -> str:
    """Return the line of a Spark error that names its cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any(line.startswith("Traceback") for line in lines):
        start = next(i for i, line in enumerate(lines) if line.startswith("Traceback"))
        inside = [line for line in lines[start:] if not line.startswith(("File ", "at ", "^", "Traceback"))]
        named = [line for line in inside if line.split(":")[0].split(".")[-1].endswith(("Error", "Exception"))]
        if named:
            return _shorten_message(named[0])
    return read_first_error_line(error)


def read_first_error_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return _shorten_message(lines[0] if lines else type(error).__name__)


def _shorten_message(text: str) -> str:
    return text if len(text) <= MAX_CAUSE else f"{text[:MAX_CAUSE]}…"
