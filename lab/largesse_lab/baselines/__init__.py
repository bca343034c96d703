"""Baselines: the models that the paper compares with, as published, extended to more than two levels, and continuous doses.

`CFRNet` and `GANITE` are networks; `BART` samples trees with stochtree; `TLearner` fits one model for each level; `BanditNet`
learns a policy without a response model. `continuous_doses` holds SIRE on a continuous scale (`DoseSIRE`), the best doses under a budget,
and their evaluation on a log.
"""

from largesse_lab.baselines.banditnet import BanditNet as BanditNet
from largesse_lab.baselines.bart import BART as BART
from largesse_lab.baselines.cfrnet import ALPHAS as ALPHAS
from largesse_lab.baselines.cfrnet import CFRNet as CFRNet
from largesse_lab.baselines.continuous_doses import DoseEvaluation as DoseEvaluation
from largesse_lab.baselines.continuous_doses import DoseLog as DoseLog
from largesse_lab.baselines.continuous_doses import Doses as Doses
from largesse_lab.baselines.continuous_doses import DoseSIRE as DoseSIRE
from largesse_lab.baselines.continuous_doses import best_doses as best_doses
from largesse_lab.baselines.continuous_doses import evaluate_doses as evaluate_doses
from largesse_lab.baselines.ganite import GANITE as GANITE
from largesse_lab.baselines.ganite import STRENGTHS as STRENGTHS
from largesse_lab.baselines.tlearner import TLearner as TLearner
