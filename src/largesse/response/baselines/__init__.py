"""The models that the paper compares with, as published, extended to more than two levels.

`cfrnet` and `ganite` are networks (their compiled parts lie in `cfrnet_program` and `ganite_program`, the distances of
CFRNet in `ipm`); `bart` samples trees with stochtree; `tlearner` fits one model for each level.
"""
