"""Continuous doses: a response model (`DoseSIRE`), allocation under a budget, and evaluation on a log."""

from largesse_lab.doses.dose_allocation import DoseAllocation as DoseAllocation
from largesse_lab.doses.dose_allocation import best_doses as best_doses
from largesse_lab.doses.dose_evaluation import DoseEvaluation as DoseEvaluation
from largesse_lab.doses.dose_evaluation import DoseLog as DoseLog
from largesse_lab.doses.dose_evaluation import evaluate_doses as evaluate_doses
from largesse_lab.doses.dose_model import DoseSIRE as DoseSIRE
