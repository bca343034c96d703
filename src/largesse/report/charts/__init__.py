"""The drawing kit of the report and of the lab's results page: SVG strings that need nothing else.

`marks` writes escaped SVG elements, `scales` places numbers along an axis, `palette` holds all colours and `pens` tells
series apart. `frame` draws a box with its axes; `sheet` arranges frames on paper with a title and a legend. Upon these stand
the charts: `lines` and `dots` in panels, `frontier` for value against budget, and `strips` for everything that stands in rows.
"""
