"""SVG charts of the report's pages, as strings.

`svg` writes escaped elements, `axes` places numbers along axes, `palette` holds the colours of the levels. `row_charts` draws
strips in rows, `curve_chart` value against budget, `small_multiples` one small chart for each group.
"""
