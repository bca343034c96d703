"""The runner of experiments.

A `Request` says what to measure; `repeats` measures rows of models on many logs, `methods` lists the rows of the paper's tables,
`simple_models` the simple models next to them, and `measures` defines the measures. `cache` resumes stopped runs, `process_pool`
shares a run among processes, `joint_training` trains the networks of many logs in one program, and `dynamic_programme` holds the
paper's dynamic programme.
"""
