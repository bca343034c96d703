"""The only door in.

`read_log` and `read_customers` take a table in any usual form, check every rule once and name everything that is wrong
together; nothing behind the door checks again. `Encoder` turns checked features into a matrix of numbers, learnt on the
log and safe for values never seen. `simulate` draws logs whose truth is known, `nested_bandit` makes them of nested labels
(`read_nested`, `nested_images`, `generated_nested`); `thornton` brings the demo's real data;
`Campaign` is one small file that names columns, levels, costs and budget.
"""

from largesse.data.campaign import Campaign as Campaign
from largesse.data.campaign import read_campaign as read_campaign
from largesse.data.encode import Encoder as Encoder
from largesse.data.labelled import Labelled as Labelled
from largesse.data.labelled import generated_nested as generated_nested
from largesse.data.labelled import nested_images as nested_images
from largesse.data.labelled import read_nested as read_nested
from largesse.data.log import log_from_arrays as log_from_arrays
from largesse.data.log import read_customers as read_customers
from largesse.data.log import read_log as read_log
from largesse.data.nested import Nested as Nested
from largesse.data.nested import nested_bandit as nested_bandit
from largesse.data.read import read_table as read_table
from largesse.data.simulate import SIMULATIONS as SIMULATIONS
from largesse.data.simulate import Simulation as Simulation
from largesse.data.simulate import simulate as simulate
