"""A port of this machine, and a missing package said in words."""

import socket

import pytest

from largesse.errors import InputError, MissingPackageError
from largesse.serve import open_listening_socket, require_packages


def test_a_port_is_of_this_machine_alone() -> None:
    with open_listening_socket(0, 0) as found:
        assert found.getsockname()[0] == "127.0.0.1"


def test_the_usual_port_gives_way_but_an_asked_one_does_not() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with open_listening_socket(None, port) as found:
            assert found.getsockname()[1] != port
        with pytest.raises(InputError, match=f"port {port} cannot be used"):
            open_listening_socket(port, 0)


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_out_of_range_is_refused(port: int) -> None:
    with pytest.raises(InputError, match="from 0"):
        open_listening_socket(port, 0)


@pytest.mark.parametrize("port", [None, 0])
@pytest.mark.parametrize("host", ["no-such-machine.invalid", "192.0.2.1", "::1", "\ud800"])
def test_a_host_that_is_not_this_machine_is_refused(host: str, port: int | None) -> None:
    with pytest.raises(InputError, match="nothing can be served on"):
        open_listening_socket(port, 0, host)


def test_a_missing_package_names_the_extra() -> None:
    with pytest.raises(MissingPackageError, match=r"pip install 'largesse\[studio\]'"):
        require_packages("studio", "json", "no_such_package")
