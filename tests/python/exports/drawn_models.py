"""Transposed convolutions as ONNX can write them, drawn by a seed, each with the right output.

The geometry and the data come from tests/python/geometry_oracle.py, whose answer is PyTorch's in float64, exact on whole numbers. Drawn here
is how it is written down: pads beside output_padding, auto_pad, output_shape, pads that are computed; open sizes; opset; weights as operands.
"""
from __future__ import annotations

import dataclasses
import random

import geometry_oracle as oracle
import numpy as np
import onnx
from onnx import TensorProto, helper

OPSETS = (11, 13, 16, 17, 18, 21)
SPELLINGS = ("pads", "pads", "pads", "same", "valid", "output_shape", "output_shape", "computed")


@dataclasses.dataclass
class Case:
    """A model with one transposed convolution between input `x` and output `y`."""

    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]
    right: np.ndarray
    label: str


def split(total: int, auto_pad: str) -> tuple[int, int]:
    """ONNX: the padding in front and behind that a total means."""
    half = total // 2  # rounds down, also below zero
    return (half, total - half) if auto_pad == "SAME_UPPER" else (total - half, half)


def spell(rng: random.Random, shape: dict, spelling: str, tricky: bool) -> dict:
    """Attributes of ConvTranspose; sets the crop of `shape` to what they mean."""
    axes = list(zip(shape["in"], shape["k"], shape["s"], shape["d"]))
    natural = oracle.natural_sizes(shape)
    limits = [max(s, d) for _, _, s, d in axes]
    extra = [rng.randrange(limit) if rng.random() < 0.5 else 0 for limit in limits]
    attributes: dict = {}
    if spelling in ("pads", "computed"):
        pads = []
        for size, (i, k, s, d) in zip(natural, axes):
            before = rng.randrange(0, min(d * (k - 1) + 3, size + 1)) if rng.random() < 0.8 else 0
            behind = before if rng.random() < 0.5 else rng.randrange(0, d * (k - 1) + 3)
            pads.append((before, behind))
        for i, size in enumerate(natural):
            if size + extra[i] - sum(pads[i]) < 1:
                pads[i] = (0, 0)
        shape["pre"] = [before for before, _ in pads]
        shape["post"] = [behind - more for (_, behind), more in zip(pads, extra)]
        attributes["pads"] = [before for before, _ in pads] + [behind for _, behind in pads]
    elif spelling == "valid":
        shape["pre"], shape["post"] = [0] * len(axes), [-more for more in extra]
        attributes["auto_pad"] = "VALID"
    else:
        auto_pad = rng.choice(["SAME_UPPER", "SAME_LOWER"] if spelling == "same" else ["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER"])
        sizes = [i * s for i, _, s, _ in axes]
        if spelling == "output_shape":
            sizes = [max(1, size + rng.randint(-5, 4)) for size in natural]
            attributes["output_shape"] = sizes
        shape["pre"], shape["post"] = [], []
        for size, more, out in zip(natural, extra, sizes):
            total = size + more - out
            before, _ = split(max(total, 0) if spelling == "output_shape" else total, auto_pad)
            shape["pre"].append(before)
            shape["post"].append(size - out - before)
        if auto_pad != "NOTSET" or rng.random() < 0.3:
            attributes["auto_pad"] = auto_pad
    if any(extra) or rng.random() < 0.2:
        attributes["output_padding"] = extra
    return attributes


def draw(seed: int, tricky: bool = False, computed: bool = True) -> Case:
    """One case. `tricky`: what engines are known to refuse or to get wrong is much more frequent. `computed`: pads may be computed."""
    rng = random.Random(seed)
    numbers = np.random.default_rng(seed)
    while True:
        shape = oracle.choose(numbers)
        if shape["n"] > 0 and min(shape["in"]) > 0 and oracle.work(shape) < 400_000 and max(shape["cin"], shape["cout"]) <= 96:
            break
    spelling = rng.choice(SPELLINGS)
    if tricky:
        spelling = rng.choice(("pads", "same", "valid", "computed", "output_shape"))
        if rng.random() < 0.5:  # dilation above the stride: output_padding from the stride on is legal
            shape["s"], shape["d"] = [rng.randint(1, 2) for _ in shape["s"]], [rng.randint(3, 4) for _ in shape["d"]]
        else:  # kernels below the stride
            shape["s"], shape["k"], shape["d"] = [rng.randint(3, 5) for _ in shape["s"]], [rng.randint(1, 2) for _ in shape["k"]], [1] * len(shape["d"])
    if spelling == "computed" and not computed:
        spelling = "pads"
    attributes = spell(rng, shape, spelling, tricky)
    return build(rng, shape, seed, attributes, spelling)


def build(rng: random.Random, shape: dict, seed: int, attributes: dict, spelling: str) -> Case:
    opset = rng.choice(OPSETS)
    axes = len(shape["in"])
    inputs = {"x": oracle.integers(shape["n"] * shape["cin"] * int(np.prod(shape["in"])), seed, 1).reshape([shape["n"], shape["cin"], *shape["in"]])}
    weights = {"w": oracle.integers(shape["cin"] * (shape["cout"] // shape["groups"]) * int(np.prod(shape["k"])), seed, 2)
               .reshape([shape["cin"], shape["cout"] // shape["groups"], *shape["k"]])}
    if shape["bias"]:
        weights["b"] = oracle.integers(shape["cout"], seed, 3)
    inputs = {name: value.astype(np.float32) for name, value in inputs.items()}
    weights = {name: value.astype(np.float32) for name, value in weights.items()}
    right = oracle.answer(shape, seed).astype(np.float32)
    operands, domain, operator = ["x", "w"], "", "ConvTranspose"
    initializers = []
    if spelling == "computed":
        domain, operator = "com.microsoft", "ConvTransposeWithDynamicPads"
        pads = np.array(attributes.pop("pads"), np.int64)
        operands.append("pads")
        if rng.random() < 0.5:
            inputs["pads"] = pads
        else:
            initializers.append(onnx.numpy_helper.from_array(pads, "pads"))
    if shape["bias"]:
        operands.append("b")
    declared = []
    open_sizes = rng.random() < 0.3
    for name, value in inputs.items():
        sizes = [f"{name}{axis}" if open_sizes and name == "x" and axis != 1 else size for axis, size in enumerate(value.shape)]
        declared.append(helper.make_tensor_value_info(name, TensorProto.INT64 if value.dtype == np.int64 else TensorProto.FLOAT, sizes))
    if rng.random() < 0.1:  # weights as operands
        inputs |= weights
        declared += [helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape) for name, value in weights.items()]
    else:
        initializers += [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()]
    attributes |= {"strides": shape["s"], "dilations": shape["d"], "group": shape["groups"]}
    if rng.random() < 0.5:
        attributes["kernel_shape"] = shape["k"]
    node = helper.make_node(operator, operands, ["y"], "up", domain=domain, **attributes)
    graph = helper.make_graph([node], "case", declared, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * (axes + 2))], initializers)
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid("com.microsoft", 1)] if domain else [])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return Case(model, inputs, right, f"seed {seed} opset {opset} {'open ' if open_sizes else ''}{shape['in']} {spelling} {attributes}")
