"""Export of policies for systems without Python: one SQL query, or one ONNX model.

`expression_graph` defines the few operations that every target supports; `compiler` turns encoders, models and the
decision into them. `sql` writes them as a query for DuckDB, which sqlglot translates for other databases; `onnx`
writes them as a model.
"""

from largesse.policy.export.compiler import compile_policy as compile_policy
from largesse.policy.export.onnx import onnx_inputs as onnx_inputs
from largesse.policy.export.onnx import policy_onnx as policy_onnx
from largesse.policy.export.sql import DIALECTS as DIALECTS
from largesse.policy.export.sql import policy_sql as policy_sql
