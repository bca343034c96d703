"""The bench on which experiments run.

A `Request` says what to measure; `repeats` measures rows of models on many logs, `rows` lists the rows of the paper's tables, and
`measures` defines what is measured. `kept` resumes stopped runs, `jobs` shares a run among processes, and `textbook` holds the
paper's dynamic programme.
"""
