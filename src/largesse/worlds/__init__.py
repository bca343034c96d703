"""Simulated logs with known true responses, and a real randomised experiment for the demo.

`draw_world` draws a random world; `simulate` draws a log of one of five fixed simulations. Both know the true response of
every customer at every level. `KnownTruth` computes the true value of a plan, the value of the best plan, and the skill of
a plan: its place between the best uniform mixture and the best plan. `read_thornton` reads a randomised experiment with
cash incentives.
"""

from largesse.worlds.known_truth import KnownTruth as KnownTruth
from largesse.worlds.paper_simulations import SIMULATIONS as SIMULATIONS
from largesse.worlds.paper_simulations import Simulation as Simulation
from largesse.worlds.paper_simulations import simulate as simulate
from largesse.worlds.random_worlds import RandomLog as RandomLog
from largesse.worlds.random_worlds import RandomWorld as RandomWorld
from largesse.worlds.random_worlds import WorldTraits as WorldTraits
from largesse.worlds.random_worlds import draw_world as draw_world
from largesse.worlds.thornton_log import read_thornton as read_thornton
from largesse.worlds.thornton_log import thornton_levels as thornton_levels
