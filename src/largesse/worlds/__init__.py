"""Logs whose truth is known, and the demo's real one.

`draw_world` draws a world at random, `simulate` a log from one of five fixed ones, each with the true response of every
customer at every level. `KnownTruth` says
what any plan is really worth, how much the best plan is, and where between uniform and best a plan lies (skill).
`read_thornton` is a randomised experiment with cash incentives.
"""

from largesse.worlds.oracle import KnownTruth as KnownTruth
from largesse.worlds.paper import SIMULATIONS as SIMULATIONS
from largesse.worlds.paper import Simulation as Simulation
from largesse.worlds.paper import simulate as simulate
from largesse.worlds.random_worlds import RandomLog as RandomLog
from largesse.worlds.random_worlds import RandomWorld as RandomWorld
from largesse.worlds.random_worlds import Traits as Traits
from largesse.worlds.random_worlds import draw_world as draw_world
from largesse.worlds.thornton import read_thornton as read_thornton
from largesse.worlds.thornton import thornton_levels as thornton_levels
