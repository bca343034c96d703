"""The command line, called in this process."""

import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from largesse import cli


class Called(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


Call = Callable[..., Called]


def make_call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Return a function that runs `largesse WORDS`."""

    def call(*words: str) -> Called:
        capsys.readouterr()
        code = 0
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["largesse", *words])
            try:
                cli.main()
            except SystemExit as stopped:
                code = int(stopped.code or 0)
        return Called(code, *capsys.readouterr())

    return call
