"""For every rule of every target a model that the target does not take without it."""
from __future__ import annotations

import random

import geometry_oracle as oracle
import numpy as np
from geometries import Case, build


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


CASES = {
    ("onnx", "computed-pads"): computed_pads,
    ("onnx", "output-shape-below-input"): output_shape_below_input,
    ("onnx", "output-shape-of-all-axes"): output_shape_of_all_axes,
    ("onnxruntime", "output-shape-beyond-stride"): output_shape_beyond_stride,
    ("onnxruntime", "output-padding-from-stride-on"): output_padding_from_stride_on,
    ("onnxruntime", "same-padding-below-zero"): same_padding_below_zero,
}
