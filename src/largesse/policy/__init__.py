"""New room."""

from largesse.policy.banditnet import BanditNet as BanditNet
from largesse.policy.policy import Policy as Policy
