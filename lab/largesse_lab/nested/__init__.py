"""Nested classification as a log of incentives: `bandit` makes the log, `labelled` reads or generates the labelled rows."""

from largesse_lab.nested.bandit import Nested as Nested
from largesse_lab.nested.bandit import make_bandit as make_bandit
from largesse_lab.nested.labelled import FILES as FILES
from largesse_lab.nested.labelled import find_data_folder as find_data_folder
from largesse_lab.nested.labelled import generate_nested as generate_nested
from largesse_lab.nested.labelled import has_nested as has_nested
from largesse_lab.nested.labelled import read_nested as read_nested
