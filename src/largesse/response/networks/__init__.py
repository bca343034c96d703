"""Neural response networks: SIRE and IRE, their layers, balance penalty, training and settings search.

`network_settings` holds the settings of networks and of their training, `layers` the layers, `hsic` the balance penalty.
`training_types`, `training_runner_hook` and `batched_training` train many networks in one compiled program.
`network_settings_search` chooses the settings of SIRE and IRE (`sire`), whose training step is in `sire_training`;
`fitted_networks` holds the fitted networks, and `doubly_robust_correction` corrects their curves. Only `layers`, `hsic`,
`sire_training` and `batched_training` import JAX, which the extra `largesse[networks]` installs; they are imported when they
are needed.
"""

from largesse.response.networks.fitted_networks import ResponseScale as ResponseScale
from largesse.response.networks.fitted_networks import check_parameter_shapes as check_parameter_shapes
from largesse.response.networks.fitted_networks import check_saved_layers as check_saved_layers
from largesse.response.networks.fitted_networks import is_bounded as is_bounded
from largesse.response.networks.fitted_networks import mark_lowest_loss as mark_lowest_loss
from largesse.response.networks.network_settings import Balance as Balance
from largesse.response.networks.network_settings import Network as Network
from largesse.response.networks.network_settings import NetworkShape as NetworkShape
from largesse.response.networks.network_settings import Training as Training
from largesse.response.networks.network_settings import find_positive_integer_problems as find_positive_integer_problems
from largesse.response.networks.network_settings import find_setting_problems as find_setting_problems
from largesse.response.networks.network_settings import replace_auto_settings as replace_auto_settings
from largesse.response.networks.sire import IRE as IRE
from largesse.response.networks.sire import SIRE as SIRE
from largesse.response.networks.sire import assign_held_out_folds as assign_held_out_folds
from largesse.response.networks.training_runner_hook import train_in_thread as train_in_thread
from largesse.response.networks.training_runner_hook import train_networks as train_networks
from largesse.response.networks.training_runner_hook import use_training_runner as use_training_runner
from largesse.response.networks.training_types import TrainedNetworks as TrainedNetworks
from largesse.response.networks.training_types import TrainingJob as TrainingJob
from largesse.response.networks.training_types import TrainingLoop as TrainingLoop
from largesse.response.networks.training_types import TrainingProgram as TrainingProgram
