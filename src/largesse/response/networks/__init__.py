"""Networks for responses and policies.

`settings` are values; `layers` and `hsic` are what a network is made of; `jobs`, `runner` and `trainer` train many of them
in one compiled program. `search` chooses the settings of `sire`'s SIRE and IRE, `fitted` is what they become,
`second_stage` corrects them, and `dose` puts them on a continuous scale. `policy_network` serves BanditNet. Modules named
`…_program`, and `layers`, `hsic` and `trainer`, import JAX; they are imported only when something is computed.
"""
