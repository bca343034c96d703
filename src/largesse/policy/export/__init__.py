"""Export of policies for machines without Python: one SQL query, or one ONNX model.

`graph` lists the few steps that every target knows; `compile` writes encoders, models and the decision as such steps. `sql`
writes them as a query for DuckDB, which sqlglot translates for other databases; `onnx` writes them as a model.
"""

from largesse.policy.export.compiler import compile_policy as compile_policy
from largesse.policy.export.onnx import onnx_inputs as onnx_inputs
from largesse.policy.export.onnx import policy_onnx as policy_onnx
from largesse.policy.export.sql import DIALECTS as DIALECTS
from largesse.policy.export.sql import policy_sql as policy_sql
