"""Measurements that anyone can repeat, one function each.

`simulation` compares response models where the truth is known: error of the curves, and skill of the plans made from
them. Every table carries the simple rows, so that nothing looks good only for want of company.
"""

from largesse.experiments.simulation import simulation as simulation
