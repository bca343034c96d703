"""Colours of the ordered levels, for light and for dark pages.

The lightness changes steadily along each ramp (green-blue, after ColorBrewer's YlGnBu), so the order survives every kind of
colour blindness and a grey printer. On dark pages the expensive levels are the bright ones.
"""

from __future__ import annotations

LIGHT_LEVELS = ("#d2ebcf", "#9dd6bf", "#5bbac3", "#3092bf", "#2666aa", "#263b8d", "#0b1b4f")
DARK_LEVELS = ("#33466a", "#306594", "#2d87ae", "#40aab8", "#75cab5", "#b5e3b1", "#f0f7c1")


def spread_colours(stops: tuple[str, ...], count: int) -> list[str]:
    """Return `count` colours evenly spaced along a ramp.

    >>> spread_colours(("#000000", "#ffffff"), 3)
    ['#000000', '#808080', '#ffffff']
    """
    if count == 1:
        return [stops[len(stops) // 2]]
    return [_interpolate(stops, i * (len(stops) - 1) / (count - 1)) for i in range(count)]


def choose_ink(colour: str) -> str:
    """Return black or white, whichever is easier to read on the colour: its contrast is at least 4.58 (WCAG AA: 4.5)."""
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(colour, ink))


def contrast(first: str, second: str) -> float:
    """Return the WCAG contrast ratio of two colours, 1 to 21."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def level_variables(stops: tuple[str, ...], count: int) -> str:
    """Return CSS declarations ``--level-k`` (fill) and ``--on-level-k`` (text on it) for `count` levels."""
    colours = spread_colours(stops, count)
    return " ".join(f"--level-{k}:{colour};--on-level-{k}:{choose_ink(colour)};" for k, colour in enumerate(colours))


def _interpolate(stops: tuple[str, ...], position: float) -> str:
    left = min(int(position), len(stops) - 2)
    weight = position - left
    pairs = zip(_rgb(stops[left]), _rgb(stops[left + 1]), strict=True)
    return "#" + "".join(f"{int(a + (b - a) * weight + 0.5):02x}" for a, b in pairs)


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: str) -> float:
    shares = [channel / 255 for channel in _rgb(colour)]
    linear = [c / 12.92 if c <= 0.03928 else float(((c + 0.055) / 1.055) ** 2.4) for c in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
