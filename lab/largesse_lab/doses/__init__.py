"""Continuous doses: SIRE on a continuous scale (`DoseSIRE`), the best doses under a budget, and their evaluation on a log."""

from largesse_lab.doses.dose_allocation import Doses as Doses
from largesse_lab.doses.dose_allocation import best_doses as best_doses
from largesse_lab.doses.dose_evaluation import DoseEvaluation as DoseEvaluation
from largesse_lab.doses.dose_evaluation import DoseLog as DoseLog
from largesse_lab.doses.dose_evaluation import evaluate_doses as evaluate_doses
from largesse_lab.doses.dose_model import DoseSIRE as DoseSIRE
