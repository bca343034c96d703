"""The whole way, where the data is.

`local` runs it on one machine: from a campaign file to a run folder, in one go (`run`) or step by step (`fit`, `plan`,
`judge`, `report`), each step reading what the one before it left in the folder.
"""

from largesse.engines.local import fit as fit
from largesse.engines.local import judge as judge
from largesse.engines.local import plan as plan
from largesse.engines.local import report as report
from largesse.engines.local import run as run
