"""Tools that experiments share: requests, methods, measures, caches and processes.

A `Request` names problems, models and repeats; `method_measurement` measures the methods of a table on many logs, `paper_methods`
lists the methods of the paper's tables, `competitor_models` the simple models next to them, and `truth_measures` defines the
measures. `plan_interval_coverage` makes plans and collects stated intervals, and `random_customer_groups` draws groups of
customers. `record_cache` resumes stopped runs, `experiment_parts` divides a run among processes, `concurrent_model_fitting` trains
the networks of many logs in one program, and `allocation_dynamic_programme` holds the paper's dynamic programme.
"""
