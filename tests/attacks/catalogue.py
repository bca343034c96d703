"""Every attack, and how many of 10,000 inputs it gets."""

from harness import Attack

ATTACKS = (
    Attack("damaged files of tables", "tables:attack", 2000, quick=0),  # a crash would end the tests: see test_tables
    Attack("odd tables from Python, from reading to judging", "odd_tables:attack", 1600),
    Attack("odd tables as files, four commands", "odd_files:attack", 200, quick=1),
    Attack("odd calls from Python", "api_calls:attack", 1000, quick=30),
    Attack("odd commands", "cli_calls:attack", 700, quick=6, seconds=20),
    Attack("hostile texts in pages", "injection:attack", 60, quick=1, seconds=120),
    Attack("same seed, same bytes", "determinism:attack", 6, quick=0, seconds=120),
    Attack("policy files sealed again", "policies:attack", 2500, seconds=300),
    Attack("campaign files, read and run", "campaigns:attack", 2000, quick=40),
    Attack("faults at every step of every command", "faults:attack", 400, quick=0, seconds=120),
    Attack("requests to a service, against a plain model", "serve_requests:attack", 1200, quick=4, seconds=120),
    Attack("ledgers against a plain model, odd arguments", "ledger_steps:attack", 900, quick=6),
    Attack("damaged ledgers, and addresses of odd places", "ledger_files:attack", 1200, quick=9),
    Attack("odd commands of the loop", "loop_commands:attack", 900, quick=9, seconds=60),
    Attack("odd calls of the loop from Python", "loop_calls:attack", 1000, quick=10, seconds=60),
    Attack(
        "exports against the policy, in DuckDB and ONNX Runtime", "exports_oracle:attack", 500, quick=4, seconds=120
    ),
    Attack("ledgers and plans as tables and logs", "loop_logs:attack", 500, quick=6, seconds=60),
    Attack("checks of campaigns: what may not change them", "check_facts:attack", 200, quick=4, seconds=60),
    Attack("requests to the studio", "studio_requests:attack", 500, quick=8, seconds=60),
    Attack("what changes under a service", "hot_changes:attack", 500, quick=8, seconds=60),
    Attack("run folders with edited JSON", "folders_json:attack", 500, quick=1, seconds=120),
)
