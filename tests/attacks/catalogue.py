"""Every attack, and how many of 10,000 inputs it gets."""

from harness import Attack

ATTACKS = (
    Attack("odd commands", "cli_calls:attack", 800, quick=12),
    Attack("odd tables from Python, from reading to judging", "odd_tables:attack", 2000),
    Attack("estimators against plain NumPy", "estimators:attack", 1000),
    Attack("default plan and frontier against every plan", "frontiers:attack", 1500),
    Attack("plans against a dynamic programme in whole numbers", "allocation_oracle:attack", 2000, quick=300),
    Attack("policy files sealed again", "policies:attack", 2500, seconds=300),
)
