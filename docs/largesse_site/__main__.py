"""`python -m largesse_site OUT`: draw the figures, build the site, and say where it is."""

from __future__ import annotations

import sys
from pathlib import Path

from largesse_site.pictures import draw_pictures
from largesse_site.site import BrokenLinkError, build_site


def main() -> int:
    """Build the site into the folder that is named, or `build/docs`."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "build/docs")
    draw_pictures()
    try:
        pages = build_site(out)
    except BrokenLinkError as broken:
        sys.stderr.write(f"{broken}\n")
        return 1
    sys.stdout.write(f"{len(pages)} pages: {out / 'index.html'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
