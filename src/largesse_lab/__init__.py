"""Measurements that anyone can repeat, one function each.

`simulation` compares response models where the truth is known: error of the curves, and skill of the plans made from
them. Every table carries the simple rows, so that nothing looks good only for want of company. `table1` is the paper's
first table with its numbers beside, `table2` its second, nested labels of images and of text as a log, `kernels` its appendix
on kernels, `kappa` its figures of error and reward against κ: they fit many repeats together, for a GPU, with `rows` that are
the same throughout.
`coverage` asks whether intervals and bands hold the truth as often as they say, `lots` whether the doctor cries wolf, `real`
whether uniform levels of randomised real logs get the value that a calculation by hand gives. `rates` measures what
monotonicity is worth as levels grow in number, `rates_n` how fast models learn. `command` runs them by name; `figures`
draws what they return, and `page` writes the page of results from their summaries, with `orderings` to say which of the
paper's hold and `ours` where our models are ahead of its rows.
"""

from largesse_lab.experiments.simulation import simulation as simulation
