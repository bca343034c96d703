"""Networks: SIRE and IRE, and the parts of which other networks are made.

`settings` holds the settings of networks and of their training, `layers` the layers, `hsic` the balance penalty. `jobs`,
`runner` and `trainer` train many networks in one compiled program. `search` chooses the settings of SIRE and IRE (`sire`), whose training
step is in `sire_loss`; `fold_networks` holds the fitted networks, and `second_stage` corrects their curves. Only `layers`,
`hsic`, `sire_loss` and `trainer` import JAX, which the extra `largesse[networks]` installs; they are imported when needed.
"""

from largesse.response.networks.fold_networks import Scale as Scale
from largesse.response.networks.fold_networks import check_depth as check_depth
from largesse.response.networks.fold_networks import check_shapes as check_shapes
from largesse.response.networks.fold_networks import choose_least as choose_least
from largesse.response.networks.fold_networks import is_bounded as is_bounded
from largesse.response.networks.jobs import Loop as Loop
from largesse.response.networks.jobs import Program as Program
from largesse.response.networks.jobs import TrainedNetworks as TrainedNetworks
from largesse.response.networks.jobs import TrainingJob as TrainingJob
from largesse.response.networks.runner import run_job as run_job
from largesse.response.networks.runner import train as train
from largesse.response.networks.runner import use_runner as use_runner
from largesse.response.networks.settings import Balance as Balance
from largesse.response.networks.settings import Network as Network
from largesse.response.networks.settings import Shape as Shape
from largesse.response.networks.settings import Training as Training
from largesse.response.networks.settings import setting_problems as setting_problems
from largesse.response.networks.settings import settle as settle
from largesse.response.networks.settings import whole_problems as whole_problems
from largesse.response.networks.sire import IRE as IRE
from largesse.response.networks.sire import SIRE as SIRE
from largesse.response.networks.sire import held_out_parts as held_out_parts
