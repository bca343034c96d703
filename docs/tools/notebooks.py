"""Notebooks of the tutorials: the text and the code of their pages, which `examples.py` runs."""

from __future__ import annotations

import doctest
import json
import re
from collections.abc import Iterator
from typing import Any

from examples import BLOCK, COMMAND

LOCAL_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]*\)")
KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def make_notebook(page: str) -> str:
    """Return a page as a notebook (nbformat 4.5) without outputs: `>>>` blocks and `$` commands become cells."""
    cells = [{"id": f"cell-{number}", **cell} for number, cell in enumerate(_split_cells(page))]
    return json.dumps({"cells": cells, "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def _split_cells(page: str) -> Iterator[dict[str, Any]]:
    position = 0
    for block in BLOCK.finditer(page):
        kind, code, metadata = block.group(1), block.group(2), {}
        if kind == "console":
            source = "".join(f"!{command}\n" for command, _ in COMMAND.findall(code))
        else:
            examples = doctest.DocTestParser().get_examples(code)
            source = "".join(example.source for example in examples)
            if any(example.exc_msg for example in examples):
                metadata = {"tags": ["raises-exception"]}  # the cells after it are still run
        if source:
            yield from _write_text(page[position : block.start()])
            cell = {"cell_type": "code", "execution_count": None, "metadata": metadata, "outputs": []}
            yield cell | {"source": source.rstrip("\n")}
            position = block.end()
    yield from _write_text(page[position:])


def _write_text(text: str) -> Iterator[dict[str, Any]]:
    """Yield a cell of text; links to other pages, which a notebook does not have, become their words."""
    if text.strip():
        yield {"cell_type": "markdown", "metadata": {}, "source": LOCAL_LINK.sub(r"\1", text).strip()}
