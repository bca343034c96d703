"""Charts of the pages: SVG strings that need no other file.

`svg` writes escaped elements, `axes` places numbers along axes, `palette` holds the colours of the levels. `row_charts` draws
strips in rows, `curve_chart` value against budget, `small_multiples` one small chart for each group.
"""
