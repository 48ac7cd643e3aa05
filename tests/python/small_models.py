"""Small ONNX models for tests of the command line, each with what NumPy makes of it."""

from __future__ import annotations

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def save(path: pathlib.Path, nodes, inputs, outputs, constants=()) -> pathlib.Path:
    """inputs and outputs: (name, element type, shape or None)."""
    values = [[helper.make_tensor_value_info(*item) for item in items] for items in (inputs, outputs)]
    graph = helper.make_graph(nodes, "small", *values, [numpy_helper.from_array(array, name) for name, array in constants])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


UP_WEIGHTS = np.linspace(-1, 1, 3 * 2 * 2 * 2, dtype=np.float32).reshape(3, 2, 2, 2)


def up(path: pathlib.Path) -> pathlib.Path:
    """x [N, 3, H, W] → y [N, 2, 2H, 2W]: a transposed convolution of kernel 2 and stride 2, then ReLU."""
    nodes = [helper.make_node("ConvTranspose", ["x", "w"], ["t"], name="deconvolution", strides=[2, 2]),
             helper.make_node("Relu", ["t"], ["y"], name="activation")]
    return save(path, nodes, [("x", TensorProto.FLOAT, ["N", 3, "H", "W"])], [("y", TensorProto.FLOAT, None)], [("w", UP_WEIGHTS)])


def up_expected(x: np.ndarray) -> np.ndarray:
    """Kernel 2 with stride 2: every input pixel gives a 2x2 block of its own."""
    blocks = np.einsum("nchw,cokl->nohkwl", x.astype(np.float64), UP_WEIGHTS.astype(np.float64))
    n, o, h, _, w, _ = blocks.shape
    return np.maximum(blocks.reshape(n, o, 2 * h, 2 * w), 0).astype(np.float32)


def two(path: pathlib.Path) -> pathlib.Path:
    """a, b [N, 4] → sum and product."""
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"], name="adding"),
             helper.make_node("Mul", ["a", "b"], ["product"], name="multiplying")]
    return save(path, nodes, [(name, TensorProto.FLOAT, ["N", 4]) for name in "ab"],
                [(name, TensorProto.FLOAT, None) for name in ("sum", "product")])


def same(path: pathlib.Path, channels: int | str, kind=TensorProto.FLOAT, shape=None) -> pathlib.Path:
    """x → y = x: shows what files become."""
    shape = shape or [1, channels, "H", "W"]
    return save(path, [helper.make_node("Identity", ["x"], ["y"], name="nothing")], [("x", kind, shape)], [("y", kind, shape)])


def chain(path: pathlib.Path, names: list[str]) -> pathlib.Path:
    """Softmax after softmax over another axis: one step for each name, however names are written."""
    nodes = [helper.make_node("Softmax", [f"v{i}"], [f"v{i + 1}"], name=name, axis=1 + i % 2) for i, name in enumerate(names)]
    return save(path, nodes, [("v0", TensorProto.FLOAT, ["N", 4, 5])], [(f"v{len(names)}", TensorProto.FLOAT, None)])


def sizes_from_data(path: pathlib.Path) -> pathlib.Path:
    """x [1, 4], s [2] → exp(x expanded to the shape s), whose size only the data of s tells."""
    nodes = [helper.make_node("Expand", ["x", "s"], ["wide"], name="widening"),
             helper.make_node("Exp", ["wide"], ["y"], name="exponential")]
    return save(path, nodes, [("x", TensorProto.FLOAT, [1, 4]), ("s", TensorProto.INT64, [2])], [("y", TensorProto.FLOAT, None)])
