"""The smallest pieces of a drawing: escaped SVG elements as strings."""

from __future__ import annotations

from html import escape


def element(name: str, *children: str, **attributes: object) -> str:
    """Return one SVG element; attributes are escaped, children are taken as they are.

    ``class_`` gives the class; underscores in names become hyphens. Numbers are written with two decimals.

    >>> element("rect", x=1.23456, class_="bar")
    '<rect x="1.23" class="bar"/>'
    """
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    if not children:
        return f"<{name}{written}/>"
    return f"<{name}{written}>{''.join(children)}</{name}>"


def title(words: str) -> str:
    """Return the tooltip of the element it is put into."""
    return f"<title>{escape(words)}</title>"


def text(words: str, **attributes: object) -> str:
    """Return a piece of writing, escaped."""
    return element("text", escape(words), **attributes)


def shorten(words: str, limit: int) -> str:
    """Cut a name to `limit` characters, the last one an ellipsis.

    >>> shorten("a very long name", 7)
    'a very…'
    """
    return words if len(words) <= limit else words[: limit - 1].rstrip() + "…"


def _value(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else escape(str(value))
