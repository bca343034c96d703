"""Colours of the ordered levels on light and dark pages.

The lightness changes steadily along each ramp (green-blue, after ColorBrewer's YlGnBu), so the order survives every kind of
colour blindness and a grey printer. On dark pages the expensive levels are the bright ones.
"""

from __future__ import annotations

LIGHT_LEVELS = ("#d2ebcf", "#9dd6bf", "#5bbac3", "#3092bf", "#2666aa", "#263b8d", "#0b1b4f")
DARK_LEVELS = ("#33466a", "#306594", "#2d87ae", "#40aab8", "#75cab5", "#b5e3b1", "#f0f7c1")


def spread_colours(stops: tuple[str, ...], count: int) -> list[str]:
    """Return `count` colours evenly spaced along a colour ramp.

    >>> spread_colours(("#000000", "#ffffff"), 3)
    ['#000000', '#808080', '#ffffff']
    """
    if count == 1:
        return [stops[len(stops) // 2]]
    return [_interpolate_colour(stops, i * (len(stops) - 1) / (count - 1)) for i in range(count)]


def choose_text_colour(colour: str) -> str:
    """Return black or white as the text colour with the higher contrast on a background colour.

    The contrast is at least 4.58 (WCAG AA: 4.5).
    """
    return max(("#000000", "#ffffff"), key=lambda ink: compute_contrast_ratio(colour, ink))


def compute_contrast_ratio(first: str, second: str) -> float:
    """Return the WCAG contrast ratio of two colours, from 1 to 21."""
    low, high = sorted((_compute_luminance(first), _compute_luminance(second)))
    return (high + 0.05) / (low + 0.05)


def write_level_css_variables(stops: tuple[str, ...], count: int) -> str:
    """Return the CSS variables of fill colour and text colour for `count` levels.

    ``--level-k`` is the fill, ``--on-level-k`` the text on it.
    """
    colours = spread_colours(stops, count)
    return " ".join(
        f"--level-{k}:{colour};--on-level-{k}:{choose_text_colour(colour)};" for k, colour in enumerate(colours)
    )


def _interpolate_colour(stops: tuple[str, ...], position: float) -> str:
    left = min(int(position), len(stops) - 2)
    weight = position - left
    pairs = zip(_parse_rgb(stops[left]), _parse_rgb(stops[left + 1]), strict=True)
    return "#" + "".join(f"{int(a + (b - a) * weight + 0.5):02x}" for a, b in pairs)


def _parse_rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _compute_luminance(colour: str) -> float:
    shares = [channel / 255 for channel in _parse_rgb(colour)]
    linear = [c / 12.92 if c <= 0.03928 else float(((c + 0.055) / 1.055) ** 2.4) for c in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
