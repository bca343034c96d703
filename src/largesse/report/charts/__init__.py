"""The drawing kit of the pages: SVG strings that need nothing else.

`svg` writes escaped elements, `axes` places numbers along axes, `palette` holds the colours of the levels. `bars` draws everything that
stands in rows, `frontier` value against budget, `small_multiples` one small chart for each group.
"""
