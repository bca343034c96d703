"""Measurements that anyone can repeat, one function each.

`simulation` compares response models where the truth is known: error of the curves, and skill of the plans made from
them. `table2` is the paper's second experiment: nested labels of images and of text as a log. Every table carries the
simple rows, so that nothing looks good only for want of company. `coverage` asks whether intervals and bands hold the
truth as often as they say, `lots` whether the doctor cries wolf, `real` whether uniform levels of randomised real logs
get the value that a calculation by hand gives.
"""

from largesse.experiments.simulation import simulation as simulation
from largesse.experiments.table2 import table2 as table2
