"""A real PostgreSQL server in a temporary folder, where the machine has one."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def find_program(name: str) -> str | None:
    """Return the path of one of the server's programs, if it is installed."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(places[-1]) if places else None)


def why_not() -> str | None:
    """Say why no server can be started here; None if one can."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed"
    if not all(map(find_program, ("initdb", "pg_ctl", "postgres"))):
        return "PostgreSQL is not installed"
    return None if os.geteuid() or find_user() else "PostgreSQL does not run as root, and there is no other user"


def find_user() -> str | None:
    """Return the user to run the server as: it refuses root."""
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    return None


class Server:
    """A server that answers on a socket in its own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        self._as = {"user": find_user()} if os.geteuid() == 0 else {}

    def address(self, schema: str) -> str:
        return f"postgresql://largesse@/postgres?host={self.folder}&schema={schema}"

    def make(self) -> None:
        if self._as:
            shutil.chown(self.folder, self._as["user"])
        self._call("initdb", "-D", self.data, "-U", "largesse", "-A", "trust", "--no-sync", "-E", "UTF8")
        settings = f"listen_addresses = ''\nunix_socket_directories = '{self.folder}'\nmax_connections = 30\n"
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(settings)

    def start(self) -> None:
        self._call("pg_ctl", "-D", self.data, "-l", self.folder / "log", "-w", "start")

    def stop(self, how: str = "fast") -> None:
        self._call("pg_ctl", "-D", self.data, "-m", how, "-w", "stop")

    def _call(self, name: str, *words: object) -> None:
        program = find_program(name)
        assert program is not None
        # The server outlives the program that starts it: it must not keep a pipe of ours open.
        with tempfile.TemporaryFile() as said:
            command = [program, *map(str, words)]
            done = subprocess.run(command, stdout=said, stderr=said, cwd="/", timeout=60, **self._as)
            said.seek(0)
            assert done.returncode == 0, said.read().decode(errors="replace")


@contextmanager
def run_server() -> Iterator[Server]:
    """Give a server that runs; it is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="largesse-pg-", dir="/tmp"))
    server = Server(folder)
    try:
        server.make()
        server.start()
        yield server
    finally:
        if (server.data / "postmaster.pid").exists():
            server.stop("immediate")
        shutil.rmtree(folder)
