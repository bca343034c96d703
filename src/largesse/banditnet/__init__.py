"""A policy learnt under a budget without a model of the response, to compare with.

`BanditNet` is the policy: fit, decide, save and load. How it learns, the incentive paper's Algorithm 1, is in `algorithm`.
"""

from largesse.banditnet.banditnet import BanditNet as BanditNet
