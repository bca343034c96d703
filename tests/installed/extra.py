"""Use one extra of an installed largesse: `python extra.py serve`, in an environment that holds the wheel with this extra."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import largesse as lg
from largesse.errors import LargesseError


def make_policy() -> Any:
    """Return a policy for a simulated log."""
    log = lg.simulate("averaged", n=500).log
    model = lg.Linear().fit(log)
    plan = lg.allocate(model.predict(log), log.levels, budget=1.0)
    return lg.Policy(model, log.levels, price=plan.price)


def use_networks() -> None:
    """Fit the paper's network."""
    log = lg.simulate("averaged", n=300).log
    model = lg.SIRE(kappa=0.1, network=lg.Network(width=8), training=lg.Training(epochs=2)).fit(log)
    assert model.predict(log).shape == (300, 5)


def use_export() -> None:
    """Export a policy as ONNX and as SQL of a database that needs sqlglot."""
    policy = make_policy()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.onnx"
        policy.to_onnx(path)
        assert path.stat().st_size > 100
    assert "select" in policy.to_sql(dialect="bigquery").lower()


def use_plots() -> None:
    """Draw a frontier."""
    assert "<svg" in lg.frontier([[0.1, 0.2], [0.1, 0.4]], [0, 1]).plot()._repr_html_()


def use_postgres() -> None:
    """Open a ledger on a server that does not exist: the driver is there, the server is not."""
    from largesse.serve import open_ledger

    try:
        open_ledger("postgresql://nobody@127.0.0.1:9/none", timeout=1)
    except LargesseError as error:
        assert "pip install" not in str(error), error
    else:
        raise AssertionError("a ledger without a server")


def use_spark() -> None:
    """Start a Spark session; without Java the error names it."""
    from largesse.pipeline.spark import open_spark_session

    try:
        with open_spark_session(master="local[1]") as session:
            assert session.range(3).count() == 3
    except LargesseError as error:
        assert "Java" in str(error), error


def use_server(command: str, path: str, *options: str) -> None:
    """Start a server and ask for a page."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        make_policy().save(Path(folder) / "policy.largesse")
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        arguments = [sys.executable, "-m", "largesse", command, *options, "--port", str(port)]
        with subprocess.Popen(arguments, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
            try:
                for _ in range(120):
                    time.sleep(0.5)
                    assert server.poll() is None, server.stdout and server.stdout.read().decode()
                    try:
                        status = urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).status
                    except urllib.error.HTTPError as refused:
                        status = refused.code
                    except OSError:
                        continue
                    assert status in (200, 401, 403), status
                    return
                raise AssertionError("the server does not answer")
            finally:
                server.terminate()


USES = {
    "networks": use_networks,
    "export": use_export,
    "plots": use_plots,
    "postgres": use_postgres,
    "spark": use_spark,
    "serve": lambda: use_server("serve", "/healthz", "policy.largesse"),
    "studio": lambda: use_server("studio", "/", "--no-browser"),
}

if __name__ == "__main__":
    USES[sys.argv[1]]()
    print(f"the extra {sys.argv[1]} works: largesse {lg.__version__}, Python {sys.version.split()[0]}")
