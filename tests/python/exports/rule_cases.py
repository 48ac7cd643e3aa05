"""For every rule of every target a model that the target does not take without it."""
from __future__ import annotations

import random

import numpy as np
from drawn_models import Case, build, draw
import torch
from onnx import TensorProto, helper, numpy_helper


def case(attributes: dict, *, size=(4,), kernel=(3,), stride=(2,), dilation=(1,), pre=(0,), post=(0,), spelling="pads", groups=1, seed=3, channels=(4, 6), bias=1,
         batch=2) -> Case:
    """A transposed convolution with these attributes, which mean this crop."""
    shape = {"rank": len(size), "n": batch, "cin": channels[0], "cout": channels[1], "groups": groups, "in": list(size), "k": list(kernel), "s": list(stride),
             "d": list(dilation), "pre": list(pre), "post": list(post), "bias": bias}
    return build(random.Random(seed), shape, seed, dict(attributes), spelling)


def output_padding_from_stride_on() -> Case:
    return case({"output_padding": [2]}, stride=[1], dilation=[3], post=[-2])


def same_padding_below_zero() -> Case:  # (4 - 1) * 3 + 1 = 10 places become 12: one more in front, one more behind
    return case({"auto_pad": "SAME_UPPER"}, kernel=[1], stride=[3], pre=[-1], post=[-1])


def computed_pads() -> Case:
    return case({"pads": [1, 0, 2, 1]}, size=[4, 5], kernel=[3, 3], stride=[2, 2], dilation=[1, 1], pre=[1, 0], post=[2, 1], spelling="computed")


def output_shape_of_all_axes() -> Case:
    """(4 - 1) * 2 + 3 = 9 places, 8 wanted: ONNX takes the odd one away in front."""
    return case({"output_shape": [2, 6, 8]}, pre=[1], post=[0])


def output_shape_beyond_stride() -> Case:
    """Taps reach 3 * 2 + 3 = 9 places; what is more lies behind."""
    return case({"output_shape": [12]}, post=[-3])


def output_shape_below_input() -> Case:
    """9 places, 3 wanted: 6 away, half in front."""
    return case({"output_shape": [3]}, pre=[3], post=[3])


def grouped_output_shape() -> Case:
    """9 places, 6 wanted: two away in front, one behind."""
    return case({"output_shape": [6]}, pre=[2], post=[1], groups=2)


def same_padding_of_open_sizes() -> Case:
    """9 places, 8 wanted, whatever the size: the odd one away behind. Open by the seed."""
    return case({"auto_pad": "SAME_UPPER"}, pre=[0], post=[1], seed=OPEN_SEED)


def output_padding() -> Case:
    """Padding 1 on both sides, one place more behind: nothing is cropped there. And 1 - 2 below zero."""
    return case({"pads": [1, 0, 1, 1], "output_padding": [1, 1]}, size=[4, 5], kernel=[3, 3], stride=[2, 2], dilation=[1, 1], pre=[1, 0], post=[0, 0])


def output_padding_below_zero() -> Case:
    return case({"output_padding": [1, 2]}, size=[4, 5], kernel=[3, 2], stride=[2, 3], dilation=[1, 1], pre=[0, 0], post=[-1, -2])


def dilation_with_stride() -> Case:
    return case({"pads": [2, 1, 0, 3]}, size=[4, 5], kernel=[3, 2], stride=[2, 1], dilation=[3, 2], pre=[2, 1], post=[0, 3])


def one_axis() -> Case:
    return case({"pads": [1, 2]}, pre=[1], post=[2])


def open_channels() -> Case:
    drawn = one_axis()
    drawn.model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "C"
    return drawn


def element_type() -> Case:
    drawn = one_axis()
    for tensor in drawn.model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for value in (drawn.model.graph.input[0], drawn.model.graph.output[0]):
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    return drawn


def computed_pad_amounts() -> Case:
    """(first, last) of each axis from the last on, turned and ordered by nodes, as torch.onnx.export(dynamo=False) writes it."""
    amounts = numpy_helper.from_array(np.array([1, 2, 3, 0, 0, 0, 0, 0], np.int64), "amounts")
    shapes = [numpy_helper.from_array(np.array(values, np.int64), name) for name, values in {"pairs": [-1, 2], "flat": [-1], "start": [-1], "end": [-9], "axis": [0]}.items()]
    nodes = [helper.make_node("Reshape", ["amounts", "pairs"], ["as_pairs"]), helper.make_node("Slice", ["as_pairs", "start", "end", "axis", "start"], ["turned"]),
             helper.make_node("Transpose", ["turned"], ["ordered"], perm=[1, 0]), helper.make_node("Reshape", ["ordered", "flat"], ["pads"]),
             helper.make_node("Pad", ["x", "pads"], ["y"], "up", mode="constant")]
    x = np.random.default_rng(1).integers(-3, 4, (1, 2, 4, 5)).astype(np.float32)
    graph = helper.make_graph(nodes, "case", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 2, 7, 8))], [amounts, *shapes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return Case(model, {"x": x}, np.pad(x, ((0, 0), (0, 0), (3, 0), (1, 2))), "pads by nodes")


def pad_in_front() -> Case:
    """A zero behind each axis of the input, written as a Pad: 6 places, (6 - 1) * 2 + 3 = 13 of them without crop, 1 away on both sides."""
    x = np.random.default_rng(4).integers(-3, 4, (1, 4, 5, 5)).astype(np.float32)
    w = np.random.default_rng(5).integers(-3, 4, (4, 2, 3, 3)).astype(np.float32)
    nodes = [helper.make_node("Pad", ["x", "amounts"], ["padded"], "pad"), helper.make_node("ConvTranspose", ["padded", "w"], ["y"], "up", strides=[2, 2], pads=[1, 1, 1, 1])]
    weights = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.array([0, 0, 0, 0, 0, 0, 1, 1], np.int64), "amounts")]
    graph = helper.make_graph(nodes, "case", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    right = torch.nn.functional.conv_transpose2d(torch.nn.functional.pad(torch.from_numpy(x), (0, 1, 0, 1)), torch.from_numpy(w), stride=2, padding=1)
    return Case(model, {"x": x}, right.numpy(), "a Pad in front")


# Of a drawn case whose sizes are open.
OPEN_SEED = next(seed for seed in range(100) if " open " in case({}, seed=seed).label)

CASES = {
    ("onnx", "computed-pads"): computed_pads,
    ("onnx", "output-shape-below-input"): output_shape_below_input,
    ("onnx", "output-shape-of-all-axes"): output_shape_of_all_axes,
    ("onnxruntime", "output-shape-beyond-stride"): output_shape_beyond_stride,
    ("openvino", "computed-pads"): computed_pads,
    ("openvino", "output-shape"): grouped_output_shape,
    ("openvino", "pad-in-front"): pad_in_front,
    ("openvino", "output-padding-from-stride-on"): lambda: draw(1_000_058),
    ("openvino", "same-padding"): same_padding_of_open_sizes,
    ("onnxruntime", "output-padding-from-stride-on"): output_padding_from_stride_on,
    ("onnxruntime", "same-padding-below-zero"): same_padding_below_zero,
    ("tvm", "computed-pads"): computed_pads,
    ("tvm", "output-padding-from-stride-on"): output_padding_from_stride_on,
    ("tvm", "output-shape"): grouped_output_shape,
    ("tvm", "same-padding-below-zero"): same_padding_below_zero,
    ("tvm", "computed-pad-amounts"): computed_pad_amounts,
    ("tensorrt", "auto-pad"): same_padding_below_zero,
    ("tensorrt", "computed-pads"): computed_pads,
    ("tensorrt", "dilation-with-stride"): dilation_with_stride,
    ("tensorrt", "element-type"): element_type,
    ("tensorrt", "one-axis"): one_axis,
    ("tensorrt", "open-channels"): open_channels,
    ("tensorrt", "output-padding"): output_padding_below_zero,
    ("tensorrt", "output-shape"): grouped_output_shape,
}
