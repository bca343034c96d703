"""Experiments that anyone can repeat: the paper's tables and figures, and measurements of the product where the truth is known.

`largesse experiment NAME` runs one of `EXPERIMENTS`, or several processes of it, and leaves records, a table, a summary and
figures in a folder; `largesse experiment page` writes one page from all summaries. The lab imports the product through its
doors; the product never imports the lab.
"""

from largesse_lab.experiments import EXPERIMENTS as EXPERIMENTS
from largesse_lab.experiments import Experiment as Experiment
