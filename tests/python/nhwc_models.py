"""An ONNX model as exporters of channels-last frameworks write it: (N, spatial..., C) everywhere, transposes around what ONNX has for (N, C, spatial...) only."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

AROUND = {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "BatchNormalization", "InstanceNormalization", "GroupNormalization", "GlobalAveragePool", "DepthToSpace", "LRN", "GridSample"}
SAME = {"Relu", "LeakyRelu", "Sigmoid", "Tanh", "Add", "Mul", "Sub", "Div", "Clip", "Sin", "Pow", "Sqrt", "Exp", "Elu", "Identity", "Cast", "PRelu", "Dropout", "Erf", "Softplus", "HardSigmoid", "HardSwish"}


def last(rank: int) -> list[int]:
    """(N, C, spatial...) to (N, spatial..., C)."""
    return [0, *range(2, rank), 1]


def first(rank: int) -> list[int]:
    return [0, rank - 1, *range(1, rank - 1)]


class Writer:
    """`there` maps the names of tensors of rank 3 to 5 that lie channels-last in the new model to what they are called in it."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = onnx.shape_inference.infer_shapes(model)
        graph = self.model.graph
        self.ranks = {value.name: len(value.type.tensor_type.shape.dim) for value in [*graph.input, *graph.value_info, *graph.output]}
        self.constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self.constants |= {node.output[0]: numpy_helper.to_array(node.attribute[0].t) for node in graph.node if node.op_type == "Constant"}
        for node in graph.node:  # one array under two names
            if node.op_type == "Identity" and node.input[0] in self.constants:
                self.constants[node.output[0]] = self.constants[node.input[0]]
        self.ranks |= {name: array.ndim for name, array in self.constants.items()}
        self.nodes: list[onnx.NodeProto] = []
        self.added: list[onnx.TensorProto] = []
        self.there: dict[str, str] = {}
        self.back: dict[str, str] = {}
        self.count = 0

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}/{self.count}"

    def transposed(self, name: str, order: list[int]) -> str:
        out = self.name(name)
        self.nodes.append(helper.make_node("Transpose", [name], [out], name=out, perm=order))
        return out

    def turned(self, name: str) -> str:
        """The tensor channels-last."""
        if name not in self.there:
            self.there[name] = self.transposed(name, last(self.ranks[name]))
        return self.there[name]

    def original(self, name: str) -> str:
        if name in self.there and name not in self.back:
            self.back[name] = self.transposed(self.there[name], first(self.ranks[name]))
        return self.back.get(name, name)

    def constant(self, array: np.ndarray, stem: str) -> str:
        out = self.name(stem)
        self.added.append(numpy_helper.from_array(np.ascontiguousarray(array), out))
        return out

    def operand(self, name: str, rank: int) -> str:
        """Of an elementwise operator whose result has this rank."""
        if name not in self.constants:
            return self.turned(name) if self.ranks[name] == rank else self.original(name)
        array = self.constants[name]
        if array.ndim < 2 and array.size == 1:
            return name
        array = array.reshape((1,) * (rank - array.ndim) + array.shape)
        return self.constant(array.transpose(last(rank)), name)


def attribute(node: onnx.NodeProto, name: str, default: object = None) -> object:
    for each in node.attribute:
        if each.name == name:
            return helper.get_attribute_value(each)
    return default


def on_channels_last(writer: Writer, node: onnx.NodeProto, rank: int) -> onnx.NodeProto | None:
    """The node over channels-last operands; None: it has no such form."""
    new = onnx.NodeProto.FromString(node.SerializeToString())
    position = {axis: place for place, axis in enumerate(last(rank))}
    if node.op_type in SAME:
        operands = [writer.operand(name, rank) if name else name for name in node.input] if node.op_type != "Clip" else [writer.turned(node.input[0]), *node.input[1:]]
    elif node.op_type in {"Concat", "Softmax"}:
        operands = [writer.turned(name) for name in node.input]
        axis = attribute(node, "axis", -1)
        del new.attribute[:]
        new.attribute.append(helper.make_attribute("axis", position[axis % rank]))
    elif node.op_type == "Resize" and all(not name or name in writer.constants for name in node.input[1:]):
        operands = [writer.turned(node.input[0])]
        for i, name in enumerate(node.input[1:], 1):
            array = writer.constants[name] if name else np.empty(0)
            if i == 1 or not array.size:  # no region of interest
                operands.append("")
                continue
            operands.append(writer.constant(array[last(rank)], name))
    elif node.op_type == "Pad" and node.input[1] in writer.constants and len(node.input) < 4:
        pads = writer.constants[node.input[1]].reshape(2, rank)[:, last(rank)].reshape(-1)
        operands = [writer.turned(node.input[0]), writer.constant(pads, node.input[1]), *node.input[2:]]
    elif node.op_type == "ReduceMean" and attribute(node, "keepdims", 1) == 1 and len(node.input) == 1:
        operands = [writer.turned(node.input[0])]
        axes = attribute(node, "axes")
        del new.attribute[:]
        new.attribute.append(helper.make_attribute("axes", sorted(position[axis % rank] for axis in axes)))
        new.attribute.append(helper.make_attribute("keepdims", 1))
    elif node.op_type == "Slice" and len(node.input) > 3 and all(name in writer.constants for name in node.input[1:]):
        axes = np.array([position[int(axis) % rank] for axis in writer.constants[node.input[3]]])
        operands = [writer.turned(node.input[0]), *node.input[1:3], writer.constant(axes, node.input[3]), *node.input[4:]]
    else:
        return None
    del new.input[:]
    new.input.extend(operands)
    return new


def channels_last(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same network; inputs and outputs of rank 3 to 5 are (N, spatial..., C)."""
    writer = Writer(model)
    graph = writer.model.graph
    kept = {tensor.name for tensor in graph.initializer}
    inputs, outputs = [], []
    for value in graph.input:
        if value.name in kept or not 3 <= writer.ranks[value.name] <= 5:
            inputs.append(value)
            continue
        writer.there[value.name] = value.name
        inputs.append(turned_value(value))
    writer.nodes.extend(node for node in graph.node if node.op_type == "Constant")
    for node in graph.node:
        if node.op_type == "Constant":
            continue
        rank = writer.ranks.get(node.output[0], 0)
        alike = 3 <= rank <= 5 and (node.op_type in AROUND or rank == writer.ranks.get(node.input[0] if node.input else "", 0) or node.op_type in SAME)
        new = on_channels_last(writer, node, rank) if alike else None
        if new is not None:
            new.output[0] = writer.name(node.output[0])
            writer.there[node.output[0]] = new.output[0]
            writer.nodes.append(new)
            continue
        new = onnx.NodeProto.FromString(node.SerializeToString())
        del new.input[:]
        new.input.extend(writer.original(name) if name else "" for name in node.input)
        writer.nodes.append(new)
        if node.op_type in AROUND and rank >= 3:
            writer.turned(node.output[0])
            writer.back[node.output[0]] = writer.transposed(writer.there[node.output[0]], first(rank))
    for value in graph.output:
        if 3 <= writer.ranks[value.name] <= 5:
            writer.nodes.append(helper.make_node("Identity", [writer.turned(value.name)], [value.name + "_last"]))
            new = turned_value(value)
            new.name = value.name + "_last"
            outputs.append(new)
        else:
            outputs.append(value)
    out = helper.make_graph(writer.nodes, graph.name, inputs, outputs, [*graph.initializer, *writer.added])
    made = helper.make_model(out, opset_imports=writer.model.opset_import, ir_version=writer.model.ir_version)
    onnx.checker.check_model(made)
    return made


def turned_value(value: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    kind = value.type.tensor_type
    dims = [d.dim_param or d.dim_value for d in kind.shape.dim]
    return helper.make_tensor_value_info(value.name, kind.elem_type, [dims[axis] for axis in last(len(dims))])


def to_last(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array.transpose(last(array.ndim))) if 3 <= array.ndim <= 5 else array
