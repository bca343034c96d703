"""The runner of experiments.

A `Request` holds what to measure; `repeats` measures the methods of a table on many logs, `methods` lists the methods of the
paper's tables, `simple_models` the simple models next to them, and `measures` defines the measures. `record_cache` resumes stopped
runs, `process_pool` divides a run among processes, `joint_training` trains the networks of many logs in one program, and
`dynamic_programme` holds the paper's dynamic programme.
"""
