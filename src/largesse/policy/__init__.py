"""Rules for customers not seen yet: `Policy`, a response model with a price, and `BanditNet`, a policy network."""

from largesse.policy.banditnet import BanditNet as BanditNet
from largesse.policy.policy import Policy as Policy
