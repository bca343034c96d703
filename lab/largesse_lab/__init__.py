"""Repeatable experiments: the paper's tables and figures, and tests of the product against a known truth.

`largesse experiment NAME` runs one of `EXPERIMENTS`, in one or several processes, and writes its records, its summary, and its
result page with figures to a folder. The lab imports the product through its packages; the product never imports the lab.
"""

from largesse_lab.experiments import EXPERIMENTS as EXPERIMENTS
from largesse_lab.experiments import Experiment as Experiment
