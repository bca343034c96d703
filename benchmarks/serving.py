"""What `largesse serve` takes: seconds of one decision at half load, decisions per second in batches, CPU time, and load under kills.

python benchmarks/serving.py latency [--seconds 20]     # one core for the server, linear and stack policies
python benchmarks/serving.py cpu [--ledger ADDRESS …]   # of a request, compared with a bare echo of its JSON
python benchmarks/serving.py kills [--minutes 30]       # two workers, one ledger, kill -9 of one every minute
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import date, timedelta
from pathlib import Path

import numpy as np

import largesse as lg
from largesse.campaign import parse_campaign
from largesse.pipeline import run
from largesse.serve import open_ledger

JSON = {"Content-Type": "application/json"}
COLUMNS = 20
END = str(date.today() + timedelta(days=60))


def make_run_folder(folder: Path, model: str, rows: int) -> list[dict]:
    """Run a campaign on a simulated log, and return customers as JSON types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    sim = lg.simulate("averaged", n=rows, seed=1)
    X = np.asarray(sim.features)[:, :COLUMNS]
    table = {f"x{j}": X[:, j] for j in range(COLUMNS - 2)}
    table["city"] = rng.choice(["Oslo", "Rome", "Kyiv", "Lima"], rows)
    table["since"] = np.array("2024-01-01", "datetime64[D]") + rng.integers(0, 700, rows)
    log = {**table, "level": sim.log.level, "response": sim.log.response}
    pq.write_table(pa.table(log), folder / "log.parquet")
    said = {
        "log": str(folder / "log.parquet"),
        "columns": {"level": "level", "response": "response"},
        "levels": {"costs": [0, 1, 2, 3, 4]},
        "plan": {"budget": 1.5},
        "model": {"name": model},
    }
    run(parse_campaign(said), folder / "run")
    listed = pa.table(table).slice(0, 2000).to_pylist()
    return [{"customer": f"c{k}", **row, "since": str(row["since"])} for k, row in enumerate(listed)]


@contextmanager
def serve_run_folder(folder: Path, *more: str, cores: set[int] | None = None):
    """Serve a run folder, and yield the port and the process of the server."""
    command = [sys.executable, "-m", "largesse", "serve", str(folder / "run"), "--port", "0", *more]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    if cores:
        os.sched_setaffinity(process.pid, cores)
    try:
        port = int(process.stdout.readline().split("http://127.0.0.1:")[1].split("/")[0])
        yield port, process
    finally:
        process.terminate()
        process.communicate(timeout=60)


def post_json(connection: http.client.HTTPConnection, asked: dict) -> dict:
    connection.request("POST", "/v1/decide", json.dumps(asked), JSON)
    answer = connection.getresponse()
    content = json.loads(answer.read())
    if answer.status != 200:
        raise RuntimeError(content)
    return content


class ConcurrentClients:
    """Clients that request decisions for one customer at a time on several connections, from one thread.

    Requests are ready before they are due, and answers are only looked at for their status: what is measured is the server.
    """

    def __init__(self, port: int, customers: list[dict], connections: int) -> None:
        self.texts = [json.dumps(row) for row in customers]
        self.sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
        self.poll, self.by_number = select.poll(), {}
        for at, one in enumerate(self.sockets):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.poll.register(one, select.POLLIN)
            self.by_number[one.fileno()] = at
        self.got = [b""] * connections
        self.head = f"POST /v1/decide HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"

    def __enter__(self) -> ConcurrentClients:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self.sockets:
            one.close()

    def send_request(self, at: int) -> None:
        """Send a request for one decision on a connection."""
        body = f'{{"request_id":"{random.getrandbits(64):x}","customers":[{random.choice(self.texts)}]}}'
        self.sockets[at].sendall(f"{self.head}Content-Length: {len(body)}\r\n\r\n{body}".encode())

    def list_answered_connections(self, wait: float) -> list[int]:
        """Return the connections whose response has arrived."""
        done = []
        for number, _ in self.poll.poll(1e3 * wait):
            at = self.by_number[number]
            self.got[at] += self.sockets[at].recv(65_536)
            head, end, body = self.got[at].partition(b"\r\n\r\n")
            if end and len(body) >= int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
                if b" 200 " not in head[:20]:
                    raise RuntimeError(self.got[at])
                self.got[at] = b""
                done.append(at)
        return done

    def measure_closed_loop_rate(self, seconds: float) -> float:
        """Return decisions per second if each connection sends its next request after each response."""
        for at in range(len(self.sockets)):
            self.send_request(at)
        begun, many, open_ = time.perf_counter(), 0, len(self.sockets)
        while open_:
            for at in self.list_answered_connections(1.0):
                many += 1
                if time.perf_counter() < begun + seconds:
                    self.send_request(at)
                else:
                    open_ -= 1
        return many / (time.perf_counter() - begun)

    def measure_open_loop_latency(self, rate: float, seconds: float) -> np.ndarray:
        """Return response times in seconds of requests that are due at random times at a mean rate."""
        begun = time.perf_counter()
        free, due, took = list(range(len(self.sockets))), {}, []
        coming = begun + random.expovariate(rate)
        while coming < begun + seconds or due:
            if coming < begun + seconds and coming <= time.perf_counter() and free:
                at = free.pop()
                due[at] = coming
                coming += random.expovariate(rate)
                self.send_request(at)
            for at in self.list_answered_connections(0.0):
                took.append(time.perf_counter() - due.pop(at))
                free.append(at)
        return np.array(took)


def measure_batch_rate(port: int, customers: list[dict], seconds: float) -> float:
    """Return decisions per second of two clients that send batches of customers."""
    begun, done = time.perf_counter(), []
    text = json.dumps(customers[:1000])

    def client(name: str) -> None:
        many = 0
        with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
            while time.perf_counter() < begun + seconds:
                connection.request("POST", "/v1/decide", f'{{"request_id":"{name}{many}","customers":{text}}}', JSON)
                answer = connection.getresponse()
                answer.read()
                if answer.status != 200:
                    raise RuntimeError(answer.status)
                many += 1000
        done.append((many, time.perf_counter() - begun))

    threads = [threading.Thread(target=client, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(many for many, _ in done) / max(took for _, took in done)


def measure_bare_model(folder: Path, customers: list[dict]) -> tuple[float, float]:
    """Return the seconds of the model's prediction for one customer, and per customer of a batch of 1,000."""
    import pyarrow as pa

    policy = lg.Policy.load(folder / "run" / "policy.largesse")
    table = pa.Table.from_pylist(customers[:1000])
    table = table.set_column(table.column_names.index("since"), "since", table.column("since").cast(pa.date32()))
    one = table.slice(0, 1)
    took = []
    for part, times in ((one, 50), (table, 20)):
        policy.model.predict(part)
        begun = time.perf_counter()
        for _ in range(times):
            policy.model.predict(part)
        took.append((time.perf_counter() - begun) / times / len(part))
    return took[0], took[1]


def print_latency(seconds: float, rows: int) -> None:
    cores = sorted(os.sched_getaffinity(0))
    print(f"server on core {cores[0]}, clients on {cores[1:]}")
    for model in ("linear", "auto"):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            customers = make_run_folder(folder, model, rows)
            before = os.sched_getaffinity(0)
            os.sched_setaffinity(0, cores[1:] or cores)
            one, each = measure_bare_model(folder, customers)
            print(f"{model}: bare predict {one * 1e3:.2f} ms for one customer, {1 / each:.0f}/s for 1,000")
            for ledger in ("none", "sqlite"):
                book = ["--ledger", f"sqlite:///{folder / 'l.db'}", "--total", "1000000", "--until", END]
                with serve_run_folder(folder, *(book if ledger == "sqlite" else []), cores={cores[0]}) as (port, _):
                    words = [describe_half_load(port, customers, connections, seconds) for connections in (1, 8)]
                    many = measure_batch_rate(port, customers, min(seconds, 5.0))
                print(
                    f"  ledger {ledger}: {'; '.join(words)}; batches of 1,000: {many:.0f}/s, {many * each:.2f} of bare predict"
                )
                sys.stdout.flush()
            os.sched_setaffinity(0, before)


def describe_half_load(port: int, customers: list[dict], connections: int, seconds: float) -> str:
    """Describe the response times at half of the highest rate of decisions."""
    with ConcurrentClients(port, customers, connections) as shoppers:
        shoppers.measure_closed_loop_rate(1.0)
        most = shoppers.measure_closed_loop_rate(min(seconds, 5.0))
    with ConcurrentClients(port, customers, 8) as shoppers:
        p50, p99 = np.quantile(shoppers.measure_open_loop_latency(most / 2, seconds), [0.5, 0.99]) * 1e3
    return f"{connections} client(s): {most:.0f}/s, at half of it p50 {p50:.2f} ms, p99 {p99:.2f} ms"


@contextmanager
def echoed():
    """Serve an application that parses a request and sends it back; yield the port and the process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [
        "--port",
        str(port),
        "--http",
        "httptools",
        "--loop",
        "asyncio",
        "--log-level",
        "error",
        "--no-access-log",
    ]
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "--factory",
        "--app-dir",
        str(Path(__file__).parent),
        Path(__file__).stem + ":make_echo",
    ]
    process = subprocess.Popen([*command, *options])
    try:
        for _ in range(200):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        yield port, process
    finally:
        process.terminate()
        process.wait(60)


def make_echo():
    """Return the bare application."""
    import orjson
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    async def echo(request):
        return Response(orjson.dumps(orjson.loads(await request.body())), media_type="application/json")

    return Starlette(routes=[Route("/v1/decide", echo, methods=["POST"])])


def cpu(seconds: float, rows: int, addresses: list[str], rounds: int) -> None:
    """Print CPU microseconds of the server for a request of one customer, and how many times a bare echo's they are."""
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        customers = make_run_folder(folder, "linear", rows)
        servers = {"echo": stack.enter_context(echoed()), "no ledger": stack.enter_context(serve_run_folder(folder))}
        for address in addresses or [f"sqlite:///{folder / 'l.db'}"]:
            book = ["--ledger", address, "--total", "100000000", "--until", END]
            servers[address.partition(":")[0]] = stack.enter_context(serve_run_folder(folder, *book))
        if len(cores) > 1:  # clients on the other cores
            for _, process in servers.values():
                os.sched_setaffinity(process.pid, {cores[0]})
            os.sched_setaffinity(0, cores[1:])
        for connections in (1, 8, 64):
            micros: dict[str, list[float]] = {kind: [] for kind in servers}
            for _ in range(rounds):  # in turn: another load of the machine meets all of them
                for kind, (port, process) in servers.items():
                    with ConcurrentClients(port, customers, connections) as shoppers:
                        shoppers.measure_closed_loop_rate(0.3)
                        before = cpu_seconds(process.pid)
                        many = shoppers.measure_closed_loop_rate(seconds) * seconds
                        micros[kind].append((cpu_seconds(process.pid) - before) / many * 1e6)
            echo = np.median(micros["echo"])
            words = (f"{kind} {np.median(took):.0f} µs ({np.median(took) / echo:.1f})" for kind, took in micros.items())
            print(f"{connections} connection(s): {', '.join(words)}")
            sys.stdout.flush()


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of all threads of a process."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def print_load_under_kills(minutes: float, every: float, rows: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        customers = make_run_folder(folder, "linear", rows)
        answers: dict[str, dict] = {}
        repeats = 0
        address = f"sqlite:///{folder / 'l.db'}"
        book = ["--ledger", address, "--total", "50000", "--until", END, "--workers", "2"]
        with serve_run_folder(folder, *book) as (port, process):
            until = time.monotonic() + 60 * minutes

            def shop(seed: int) -> None:
                nonlocal repeats
                rng, k = random.Random(seed), 0
                while time.monotonic() < until:
                    asked = {"request_id": f"{seed}-{k}", "customers": [customers[rng.randrange(len(customers))]]}
                    tries = 0
                    while True:
                        tries += 1
                        try:
                            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
                                answers[asked["request_id"]] = post_json(connection, asked)
                            break
                        except (OSError, http.client.HTTPException, ValueError):
                            time.sleep(0.05)
                    repeats += tries > 1
                    k += 1

            threads = [threading.Thread(target=shop, args=(seed,)) for seed in range(4)]
            for thread in threads:
                thread.start()
            killed = 0
            while time.monotonic() + every < until:
                time.sleep(every)
                found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
                found = [one for one in found if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]  # workers
                os.kill(int(random.choice(found)), signal.SIGKILL)
                killed += 1
            for thread in threads:
                thread.join()
        with open_ledger(address) as ledger:
            booked = {row[0]: row for row in ledger.decisions()}
            lost = [key for key in answers if key not in booked]
            other = [key for key, one in answers.items() if booked[key][2] != one["decisions"][0]["level_number"]]
            standing, fine = ledger.standing().as_dict(), ledger.audit().matches
        print(
            f"{minutes:g} min, {killed} kills, {len(answers):,} decisions answered, {repeats} asked again, "
            f"{len(booked):,} booked, {len(lost)} lost, {len(other)} different, spent {standing['spent']:.2f} of 50,000, "
            f"ledger = sum of decisions: {fine}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["latency", "cpu", "kills"])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--every", type=float, default=60.0)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--ledger", action="append", default=[])
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if given.what == "latency":
        print_latency(given.seconds, given.rows)
    elif given.what == "cpu":
        cpu(given.seconds, given.rows, given.ledger, given.rounds)
    else:
        print_load_under_kills(given.minutes, given.every, given.rows)
