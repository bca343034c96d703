"""Where the text of a drawing stands."""

import re
import xml.etree.ElementTree as ET

from largesse.report.charts.frame import FONT
from largesse.report.charts.marks import measure

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[tuple[str, float, float, float, float]]:
    """Words with the box (left, right, top, bottom) that they fill, after the anchor and a quarter turn."""
    found = []
    for node in ET.fromstring(svg).iter(f"{SVG}text"):
        words, size = node.text or "", float(node.get("font-size", FONT))
        x, y, long = float(node.get("x", 0)), float(node.get("y", 0)), measure(words, size)
        start = {"middle": -0.5, "end": -1.0}.get(node.get("text-anchor", ""), 0.0) * long
        turned = re.match(r"translate\(([\d.-]+),([\d.-]+)\) rotate\(-90\)", node.get("transform", ""))
        if turned:
            x, y = float(turned[1]), float(turned[2])
            found.append((words, x - size, x + size * 0.3, y + start, y + start + long))
        else:
            found.append((words, x + start, x + start + long, y - size * 0.8, y + size * 0.25))
    return found


def check_text(svg: str) -> None:
    """All text stands inside the drawing, and no two pieces overlap; nothing is drawn at a place that is no number."""
    root = ET.fromstring(svg)
    _, _, width, height = map(float, root.get("viewBox", "").split())
    drawn = re.sub(r"<(style|title)>.*?</\1>|<text.*?</text>", "", svg, flags=re.DOTALL)
    assert not re.search(r"nan|inf|None", drawn, flags=re.IGNORECASE)
    boxes = texts(svg)
    for words, left, right, top, bottom in boxes:
        assert left >= 0, words
        assert right <= width, words
        assert top >= 0, words
        assert bottom <= height, words
    for i, (words, left, right, top, bottom) in enumerate(boxes):
        for other, left2, right2, top2, bottom2 in boxes[:i]:
            across, down = min(right, right2) - max(left, left2), min(bottom, bottom2) - max(top, top2)
            assert across <= 0 or down <= 0, f"{words!r} over {other!r}"
