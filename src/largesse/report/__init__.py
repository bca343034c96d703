"""Show a person who decides what a plan brings, in one HTML file that needs nothing else.

A report is made in two steps: numbers → dict, dict → page. `render` is the second step: it takes a plain dict of JSON
types and returns a complete page that works offline, on a phone, in the dark and on paper. It computes nothing but
layout, so every figure on the page can be traced to a number in the dict. Inside, `formats` writes numbers, `scales` and
`palette` choose axes and colours, `figures` draws the frontier, `strips` draws everything that stands in rows,
`sections` arranges each section, and `page` fills the template. `checkup` and `render_checkup` do the same for a log
that has only been examined.
"""

from largesse.report.page import render as render
from largesse.report.page import render_checkup as render_checkup
