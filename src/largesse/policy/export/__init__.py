"""Export of policies for systems without Python: one SQL query, or one ONNX model.

`expression_graph` defines the few operations that every target supports; `graph_compiler` turns encoders, models and the
decision into them. `sql` writes them as a query for DuckDB, which sqlglot translates for other databases; `onnx`
writes them as a model.
"""

from largesse.policy.export.graph_compiler import compile_policy as compile_policy
from largesse.policy.export.onnx import make_policy_onnx as make_policy_onnx
from largesse.policy.export.onnx import onnx_inputs as onnx_inputs
from largesse.policy.export.sql import DIALECTS as DIALECTS
from largesse.policy.export.sql import write_policy_sql as write_policy_sql
