"""Policies for machines without Python: one SQL query, or one ONNX model.

`values` lists the few steps that every target knows, `features`, `curves`, `networks` and `rule` write encoders, models and
the decision as such steps. `dialects`, `layers`, `sql` and `query` make them a query, `onnx_graph` a model. `card_query` is
the query of a score card.
"""

from largesse.policy.export.card_query import card_sql as card_sql
from largesse.policy.export.curves import WRITERS as WRITERS
from largesse.policy.export.dialects import DIALECTS as DIALECTS
from largesse.policy.export.onnx_graph import onnx_inputs as onnx_inputs
from largesse.policy.export.onnx_graph import policy_onnx as policy_onnx
from largesse.policy.export.query import policy_sql as policy_sql
