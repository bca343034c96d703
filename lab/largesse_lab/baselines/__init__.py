"""Baselines: the models that the paper compares its method with, extended to more than two levels.

`CFRNet` and `GANITE` are networks; `BART` samples trees with stochtree; `TLearner` fits one model for each level; `BanditNet`
learns a policy without a response model.
"""

from largesse_lab.baselines.banditnet import BanditNet as BanditNet
from largesse_lab.baselines.bart import BART as BART
from largesse_lab.baselines.cfrnet import ALPHAS as ALPHAS
from largesse_lab.baselines.cfrnet import CFRNet as CFRNet
from largesse_lab.baselines.ganite import GANITE as GANITE
from largesse_lab.baselines.ganite import STRENGTHS as STRENGTHS
from largesse_lab.baselines.tlearner import TLearner as TLearner
