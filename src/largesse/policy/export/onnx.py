"""ONNX model of a policy in float64 (opset 21, ai.onnx.ml 5: ONNX Runtime 1.20 or later).

Inputs are the raw features, (n, 1) each: numbers, and dates as seconds since 1970, as float64 with NaN for missing values; text
as strings. ONNX has no missing text: an unused word represents it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from largesse.data import MAX_STANDARD_DEVIATIONS, Encoder
from largesse.errors import import_optional_package
from largesse.policy.export.expression_graph import Value
from largesse.policy.export.graph_compiler import OUTPUT, DecisionGraph, compile_policy
from largesse.records import Array
from largesse.version import __version__

OPSETS = {"": 21, "ai.onnx.ml": 5}
IR_VERSION = 10
MARK = "<missing>"
MAX_FLOAT64 = float(np.finfo(np.float64).max)
BRANCH_LEQ, SUM, NONE = 0, 1, 0  # the codes of TreeEnsemble
ELEMENTWISE_OPERATORS = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "max": "Max",
    "min": "Min",
    "exp": "Exp",
    "log": "Log",
    "tanh": "Tanh",
}


def make_policy_onnx(policy: Any, price: float) -> bytes:
    """Return an ONNX model that makes the decisions of a policy at a shadow price."""
    onnx = import_optional_package("onnx", "export", "export")
    writer = OnnxWriter(onnx, choose_missing_word(policy.model.encoder_))
    facts = {"version": __version__, "price": price, "levels": policy.levels.labels}
    model: bytes = writer.make_onnx_model(compile_policy(policy, price), facts).SerializeToString(deterministic=True)
    return model


def choose_missing_word(encoder: Encoder) -> str:
    """Choose the word that represents missing text in ONNX inputs: a word that no text feature contains."""
    mark, words = "", _list_words(encoder)
    while mark in words:
        mark = MARK if not mark else f"<{mark}>"
    return mark


def _list_words(encoder: Encoder) -> set[str]:
    return {word for column in encoder.columns for word in getattr(column, "words", ())}


def make_input_name(feature: str) -> str:
    """Make the ONNX input name of a feature; a prefix avoids empty names and the names of outputs."""
    return f"feature {feature}" if feature in OUTPUT or not feature else feature


def onnx_inputs(encoder: Encoder, features: Any, costs: Mapping[str, Array]) -> dict[str, Array]:
    """Convert a table of features, and costs (n,) by column, to the input arrays of an exported ONNX model."""
    mark = choose_missing_word(encoder)
    unseen = f"{mark}'"  # an unused word for customers whose text is the mark itself
    while unseen in _list_words(encoder):
        unseen += "'"
    inputs: dict[str, Array] = {}
    for name, values in {**encoder.read_raw_features(features), **costs}.items():
        if values.dtype == object:
            replacements = {None: mark, mark: unseen}
            values = np.array([replacements.get(word, word) for word in values], dtype=object)
        inputs[make_input_name(name)] = values.reshape(-1, 1)
    return inputs


class OnnxWriter:
    """Writer of an expression graph as ONNX operators on tensors (n, width)."""

    def __init__(self, onnx: Any, mark: str) -> None:
        self.onnx, self.mark = onnx, mark
        self.nodes: list[Any] = []
        self.held: list[Any] = []  # initialisers
        self.inputs: dict[str, tuple[Any, str]] = {}  # name → its declaration and its kind
        self.known: dict[int, str] = {}

    def write(self, value: Value) -> str:
        """Write a graph node and its operands as ONNX operators; return the name of the result tensor."""
        if id(value) not in self.known:
            write = ONNX_WRITERS.get(value.step)
            self.known[id(value)] = (
                write(self, value)
                if write
                else self.add_node(ELEMENTWISE_OPERATORS[value.step], [self.write(need) for need in value.needs])
            )
        return self.known[id(value)]

    def add_node(self, op: str, needs: Sequence[str], *, domain: str = "", **facts: Any) -> str:
        """Add an ONNX operator, and return the name of its output tensor."""
        name = f"largesse/{len(self.nodes)}"
        self.nodes.append(
            self.onnx.helper.make_node(op, list(needs), [name], name=f"{op}/{name}", domain=domain, **facts)
        )
        return name

    def add_constant(self, values: Any) -> str:
        """Add a constant tensor, and return its name."""
        name = f"largesse/held/{len(self.held)}"
        array = np.asarray(values)
        if array.dtype.kind in "US":
            kind, texts = self.onnx.TensorProto.STRING, [str(text).encode() for text in array.ravel()]
            self.held.append(self.onnx.helper.make_tensor(name, kind, array.shape, texts))
        else:
            self.held.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add_input(self, name: str, kind: str) -> str:
        """Declare a feature as an input of the ONNX model, and return the input's name."""
        tensor = make_input_name(name)
        proto = self.onnx.TensorProto
        element = proto.STRING if kind == "text" else proto.DOUBLE
        self.inputs[tensor] = (self.onnx.helper.make_tensor_value_info(tensor, element, ["n", 1]), kind)
        return tensor

    def cast(self, name: str, kind: str) -> str:
        """Cast a tensor to FLOAT, DOUBLE or INT64, and return the name of the result."""
        return self.add_node("Cast", [name], to=getattr(self.onnx.TensorProto, kind))

    def round_to_float32(self, name: str) -> str:
        """Round a float64 tensor to the precision of float32, and return the name of the result."""
        return self.cast(self.cast(name, "FLOAT"), "DOUBLE")

    def add_finite_mask(self, name: str) -> str:
        """Compute a mask of the finite numbers in a tensor, and return its name."""
        return self.add_node("LessOrEqual", [self.add_node("Abs", [name]), self.add_constant(np.float64(MAX_FLOAT64))])

    def make_onnx_model(self, decision: DecisionGraph, facts: Mapping[str, Any]) -> Any:
        """Return the ONNX model that gives the level, expected response and expected cost of each customer."""
        helper, proto = self.onnx.helper, self.onnx.TensorProto
        level, response, cost = (self.write(value) for value in (decision.level, decision.response, decision.cost))
        number = self.cast(level, "INT64")
        known = [self._mark_valid_costs(self.write(value)) for value in decision.own_costs]
        for is_cost in known:
            number = self.add_node("Where", [is_cost, number, self.add_constant(np.int64(-1))])
        place = self.add_node(
            "Where",
            [
                self.add_node("Less", [number, self.add_constant(np.int64(0))]),
                self.add_constant(np.int64(len(decision.labels))),
                number,
            ],
        )
        names = self.add_node("Gather", [self.add_constant(np.array([*decision.labels, ""])), place], axis=0)
        outputs = []
        kinds = (proto.STRING, proto.INT64, proto.DOUBLE, proto.DOUBLE)
        for name, tensor, kind in zip(OUTPUT, (names, number, response, cost), kinds, strict=True):
            self.nodes.append(helper.make_node("Reshape", [tensor, self.add_constant(np.array([-1]))], [name]))
            outputs.append(helper.make_tensor_value_info(name, kind, ["n"]))
        inputs = [info for info, _ in self.inputs.values()]
        graph = helper.make_graph(self.nodes, "largesse", inputs, outputs, self.held)
        opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="largesse")
        kinds_of = {name: kind for name, (_, kind) in self.inputs.items()}
        metadata = {**facts, "inputs": kinds_of, "missing_text": self.mark}
        helper.set_model_props(model, {"largesse": json.dumps(metadata, sort_keys=True)})
        return model

    def _mark_valid_costs(self, name: str) -> str:
        not_negative = self.add_node("LessOrEqual", [self.add_constant(np.float64(0.0)), name])
        return self.add_node("And", [not_negative, self.add_finite_mask(name)])


# -- steps that are more than one operator ----------------------------------------------------------------------------------


def _write_scaled_number(writer: OnnxWriter, value: Value) -> str:
    scale, unit = value.facts["scale"], value.facts["unit"]
    raw = writer.write(value.needs[0])
    known, columns = writer.add_finite_mask(raw), []
    if scale.spread > 0:
        days = raw if unit == 1.0 else writer.add_node("Div", [raw, writer.add_constant(np.float64(unit))])
        deviations = writer.add_node("Sub", [days, writer.add_constant(np.float64(scale.centre))])
        deviations = writer.add_node("Div", [deviations, writer.add_constant(np.float64(scale.spread))])
        clipped = writer.add_node(
            "Clip",
            [
                deviations,
                writer.add_constant(np.float64(-MAX_STANDARD_DEVIATIONS)),
                writer.add_constant(np.float64(MAX_STANDARD_DEVIATIONS)),
            ],
        )
        wide = writer.add_node("Where", [known, clipped, writer.add_constant(np.float64(0.0))])
        columns.append(writer.round_to_float32(wide))
    if scale.missing:
        columns.append(writer.cast(writer.add_node("Not", [known]), "DOUBLE"))
    return columns[0] if len(columns) == 1 else writer.add_node("Concat", columns, axis=1)


def _write_condition_test(writer: OnnxWriter, value: Value) -> str:
    condition, raw = value.facts["condition"], writer.write(value.needs[0])
    if value.needs[0].step == "text":
        words = [*condition.words] if condition.kind == "words" else [writer.mark]
        codes: dict[str, Any] = {"keys_strings": words, "values_int64s": [1] * len(words), "default_int64": 0}
        return writer.cast(writer.add_node("LabelEncoder", [raw], domain="ai.onnx.ml", **codes), "DOUBLE")
    known = writer.add_finite_mask(raw)
    if condition.kind == "missing":
        return writer.cast(writer.add_node("Not", [known]), "DOUBLE")
    above = writer.add_node("LessOrEqual", [writer.add_constant(np.float64(condition.low)), raw])
    below = writer.add_node("LessOrEqual", [raw, writer.add_constant(np.float64(condition.high))])
    return writer.cast(writer.add_node("And", [known, writer.add_node("And", [above, below])]), "DOUBLE")


def _write_cyclic_feature(writer: OnnxWriter, value: Value) -> str:
    raw = writer.write(value.needs[0])
    seconds = writer.add_node("Where", [writer.add_finite_mask(raw), raw, writer.add_constant(np.float64(0.0))])
    angle = writer.add_node("Mul", [seconds, writer.add_constant(np.float64(value.facts["per_second"]))])
    if value.facts["wave"] == "sin":
        return writer.round_to_float32(writer.add_node("Sin", [angle]))
    # ONNX Runtime has no cosine of float64: it is 1 − 2 sin² of half the angle.
    half = writer.add_node("Sin", [writer.add_node("Mul", [angle, writer.add_constant(np.float64(0.5))])])
    square = writer.add_node("Mul", [writer.add_node("Mul", [half, half]), writer.add_constant(np.float64(2.0))])
    return writer.round_to_float32(writer.add_node("Sub", [writer.add_constant(np.float64(1.0)), square]))


def _write_word_index(writer: OnnxWriter, value: Value, missing: int, unseen: int) -> str:
    """Write the lookup of each word's index (n, 1), with fixed indices for missing and unseen text."""
    words = value.facts["column"].words
    return writer.add_node(
        "LabelEncoder",
        [writer.write(value.needs[0])],
        domain="ai.onnx.ml",
        keys_strings=[*words, writer.mark],
        values_int64s=[*range(len(words)), missing],
        default_int64=unseen,
    )


def _write_word_indicators(writer: OnnxWriter, value: Value) -> str:
    column = value.facts["column"]
    code = _write_word_index(writer, value, -1, len(column.words))
    wanted = [*range(len(column.indicator_words)), *[len(column.words)] * column.other, *[-1] * column.missing]
    return writer.cast(
        writer.add_node("Equal", [code, writer.add_constant(np.array([wanted], dtype=np.int64))]), "DOUBLE"
    )


def _write_word_means(writer: OnnxWriter, value: Value) -> str:
    column = value.facts["column"]
    code = _write_word_index(writer, value, len(column.words), len(column.table) - 1)
    flat = writer.add_node("Reshape", [code, writer.add_constant(np.array([-1]))])
    table = np.asarray(column.table, dtype=np.float32).astype(np.float64)
    return writer.add_node("Gather", [writer.add_constant(table), flat], axis=0)


def _write_picked_columns(writer: OnnxWriter, value: Value) -> str:
    columns = writer.add_constant(np.array(value.facts["columns"], dtype=np.int64))
    return writer.add_node("Gather", [writer.write(value.needs[0]), columns], axis=1)


def _write_indexed_column(writer: OnnxWriter, value: Value) -> str:
    table, place = (writer.write(need) for need in value.needs)
    levels = writer.add_constant(np.arange(value.needs[0].width, dtype=np.float64)[None, :])
    chosen = writer.add_node(
        "Where", [writer.add_node("Equal", [place, levels]), table, writer.add_constant(np.float64(0.0))]
    )
    return writer.add_node("ReduceSum", [chosen, writer.add_constant(np.array([1]))], keepdims=1)


def _write_affine(writer: OnnxWriter, value: Value) -> str:
    product = writer.add_node("MatMul", [writer.write(value.needs[0]), writer.add_constant(value.facts["weights"])])
    bias = value.facts["bias"]
    return writer.add_node("Add", [product, writer.add_constant(bias[None, :])]) if bias.any() else product


def _write_where_less(writer: OnnxWriter, value: Value) -> str:
    a, b, then, other = (writer.write(need) for need in value.needs)
    return writer.add_node("Where", [writer.add_node("Less", [a, b]), then, other])


def _write_trees(writer: OnnxWriter, value: Value) -> str:
    """Write boosted trees as one TreeEnsemble operator that sums the trees at each level (n, K).

    Trees that do not depend on the level are one more target, added to all.
    """
    trees, K = value.facts["trees"], value.width
    arrays = OnnxTreeEnsemble(trees, value.needs[0].width)
    bias = np.full(K, float(value.facts["baseline"]))
    for root in trees.roots:
        same = arrays.ignores_level(int(root))
        for k in [0] if same else range(K):
            place = slice(None) if same else slice(k, k + 1)
            bias[place] += arrays.add_tree(int(root), k, K if same else k)
    if not arrays.roots:
        return writer.add_constant(bias[None, :])
    sums = writer.add_node(
        "TreeEnsemble",
        [writer.write(value.needs[0])],
        domain="ai.onnx.ml",
        **arrays.make_attributes(writer.onnx, K + 1),
    )
    level_sums = writer.add_node("Gather", [sums, writer.add_constant(np.arange(K))], axis=1)
    common_sums = writer.add_node("Gather", [sums, writer.add_constant(np.array([K]))], axis=1)
    return writer.add_node(
        "Add", [writer.add_node("Add", [level_sums, common_sums]), writer.add_constant(bias[None, :])]
    )


class OnnxTreeEnsemble:
    """Boosted trees, resolved at fixed levels, as the attribute arrays of ONNX's TreeEnsemble operator."""

    def __init__(self, trees: Any, features: int) -> None:
        self.trees, self.features = trees, features
        self.roots: list[int] = []
        self.nodes: list[tuple[int, float, int, int, int, int]] = []  # feature, split, left, leaf?, right, leaf?
        self.leaves: list[tuple[int, float]] = []  # target, value

    def ignores_level(self, node: int) -> bool:
        """Test if a tree has no split on the level."""
        if self.trees.left[node] < 0:
            return True
        on_feature = int(self.trees.feature[node]) != self.features
        return on_feature and all(self.ignores_level(int(side[node])) for side in (self.trees.left, self.trees.right))

    def add_tree(self, root: int, level: int, target: int) -> float:
        """Add a tree at a fixed level, and return 0; for a tree of one leaf, add nothing and return its value."""
        node = self._skip_level_splits(root, level)
        if self.trees.left[node] < 0:
            return float(self.trees.value[node])
        self.roots.append(self._add_subtree(node, level, target)[0])
        return 0.0

    def _skip_level_splits(self, node: int, level: int) -> int:
        """Follow splits on the level from a node to the next leaf or feature split."""
        while self.trees.left[node] >= 0 and int(self.trees.feature[node]) == self.features:
            side = self.trees.left if level <= self.trees.threshold[node] else self.trees.right
            node = int(side[node])
        return node

    def _add_subtree(self, node: int, level: int, target: int) -> tuple[int, int]:
        """Add a tree node and its descendants; return the node's index, and 1 for a leaf."""
        node = self._skip_level_splits(node, level)
        if self.trees.left[node] < 0:
            self.leaves.append((target, float(self.trees.value[node])))
            return len(self.leaves) - 1, 1
        index = len(self.nodes)
        self.nodes.append((0, 0.0, 0, 0, 0, 0))
        left = self._add_subtree(int(self.trees.left[node]), level, target)
        right = self._add_subtree(int(self.trees.right[node]), level, target)
        self.nodes[index] = (int(self.trees.feature[node]), float(self.trees.threshold[node]), *left, *right)
        return index, 0

    def make_attributes(self, onnx: Any, targets: int) -> dict[str, Any]:
        """Return the attributes of the TreeEnsemble operator by name."""
        feature, split, left, left_leaf, right, right_leaf = (list(part) for part in zip(*self.nodes, strict=True))
        target, value = (list(part) for part in zip(*self.leaves, strict=True))
        as_tensor = onnx.numpy_helper.from_array
        return {
            "nodes_featureids": feature,
            "nodes_splits": as_tensor(np.array(split, dtype=np.float64)),
            "nodes_modes": as_tensor(np.full(len(split), BRANCH_LEQ, dtype=np.uint8)),
            "nodes_truenodeids": left,
            "nodes_trueleafs": left_leaf,
            "nodes_falsenodeids": right,
            "nodes_falseleafs": right_leaf,
            "leaf_targetids": target,
            "leaf_weights": as_tensor(np.array(value, dtype=np.float64)),
            "tree_roots": self.roots,
            "n_targets": targets,
            "aggregate_function": SUM,
            "post_transform": NONE,
        }


ONNX_WRITERS: Mapping[str, Callable[[OnnxWriter, Value], str]] = MappingProxyType(
    {
        "constant": lambda writer, value: writer.add_constant(value.facts["row"][None, :]),
        **dict.fromkeys(
            ("number", "seconds", "text"), lambda writer, value: writer.add_input(value.facts["name"], value.step)
        ),
        "inside": _write_condition_test,
        "scaled": _write_scaled_number,
        "wave": _write_cyclic_feature,
        "words": _write_word_indicators,
        "means": _write_word_means,
        "join": lambda writer, value: writer.add_node("Concat", [writer.write(need) for need in value.needs], axis=1),
        "pick": _write_picked_columns,
        "network": lambda writer, value: writer.write(value.needs[0]),
        "take": _write_indexed_column,
        "affine": _write_affine,
        "where_less": _write_where_less,
        "trees": _write_trees,
    }
)
