"""New room."""

from largesse.worlds.simulation import SIMULATIONS as SIMULATIONS
from largesse.worlds.simulation import Simulation as Simulation
from largesse.worlds.simulation import simulate as simulate
from largesse.worlds.thornton import read_thornton as read_thornton
from largesse.worlds.thornton import thornton_levels as thornton_levels
from largesse.worlds.truth import Known as Known
