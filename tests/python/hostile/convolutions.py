"""Attributes and operands of convolutions."""

import numpy as np
from onnx import helper

from hostile.parts import CASES, INT64, branch, case, deconv, info, model, node, weight


def _attributes(prefix, op, weights, table):
    for name, attributes in table.items():
        def build(attributes=attributes):
            return model([node(op, "x,w", name="up", **attributes)], [weight("w", *weights)])
        CASES[f"{prefix}_{name}"] = build


SHARED = {
    "stride_zero": dict(strides=[0, 1]), "stride_negative": dict(strides=[-1, 1]), "stride_min": dict(strides=[-2**63, 1]),
    "stride_huge": dict(strides=[2**32, 1]), "strides_short": dict(strides=[2]), "strides_long": dict(strides=[1, 1, 1]),
    "dilation_zero": dict(dilations=[0, 1]), "dilation_negative": dict(dilations=[-1, 1]), "dilation_huge": dict(dilations=[2**62, 1]),
    "group_zero": dict(group=0), "group_negative": dict(group=-1), "group_not_dividing": dict(group=3), "group_huge": dict(group=2**40),
    "kernel_shape_wrong": dict(kernel_shape=[5, 3]), "kernel_shape_short": dict(kernel_shape=[3]), "pads_odd": dict(pads=[1, 1, 1]),
    "pads_with_auto_pad": dict(pads=[1, 1, 1, 1], auto_pad="SAME_UPPER"), "auto_pad_unknown": dict(auto_pad="SOMETIMES"),
    "auto_pad_long": dict(auto_pad="X" * 100000), "strides_of_floats": dict(strides=[1.5, 2.0]), "unknown_attribute": dict(stride=[1, 1]),
}
_attributes("conv", "Conv", (3, 2, 3, 3), SHARED)
_attributes("deconv", "ConvTranspose", (2, 3, 3, 3), {
    **SHARED, "output_padding_negative": dict(output_padding=[-1, 0]), "output_padding_short": dict(output_padding=[0]),
    "output_padding_as_stride": dict(strides=[2, 2], output_padding=[2, 0]), "output_shape_zero": dict(output_shape=[0, 5]),
    "output_shape_negative": dict(output_shape=[-5, 5]), "output_shape_short": dict(output_shape=[5]),
    "pads_negative_output": dict(pads=[9, 9, 9, 9]), "pads_overflow": dict(pads=[2**62, 0, 2**62, 0]),
})
CASES["deconv_rank_5_weight_3"] = lambda: deconv(w=(2, 3, 3), x=(1, 2, 5, 5, 5))
CASES["deconv_rank_3_weight_5"] = lambda: deconv(w=(2, 3, 3, 3, 3), x=(1, 2, 5))
CASES["deconv_rank_2"] = lambda: deconv(w=(2, 3), x=(1, 2))
CASES["deconv_rank_0"] = lambda: deconv(w=(), x=())
CASES["deconv_channels"] = lambda: deconv(w=(4, 3, 3, 3))
CASES["deconv_bias_length"] = lambda: deconv(bias=(4,))
CASES["deconv_bias_rank"] = lambda: deconv(bias=(1, 3))
CASES["deconv_huge_output"] = lambda: model(
    [node("ConvTranspose", "x,w", name="up", strides=[2**30, 2**30])], [weight("w", 2, 3, 3, 3)], [info("x", (2**20, 2, 2**20, 2**20))])


_attributes("deconv", "ConvTranspose", (2, 3, 3, 3), {
    "output_padding_long": dict(output_padding=[0, 0, 0]), "output_padding_min": dict(strides=[2, 2], output_padding=[-2**63, 0]),
    "output_padding_huge": dict(strides=[2, 2], output_padding=[2**62, 0]), "output_padding_as_both": dict(strides=[2, 2], dilations=[3, 3], output_padding=[3, 0]),
    "output_padding_below_dilation": dict(strides=[2, 2], dilations=[3, 3], output_padding=[2, 0]),
    "output_padding_of_floats": dict(output_padding=[0.5, 0.0]), "output_shape_long": dict(output_shape=[1, 2, 3, 5, 5, 5]),
    "output_shape_whole": dict(output_shape=[1, 3, 7, 7]), "output_shape_min": dict(output_shape=[-2**63, 5]), "output_shape_huge": dict(output_shape=[2**62, 2**62]),
    "output_shape_below_input": dict(strides=[2, 2], output_shape=[3, 3]), "output_shape_and_padding": dict(strides=[2, 2], output_shape=[10, 10], output_padding=[1, 1]),
    "output_shape_and_pads": dict(strides=[2, 2], output_shape=[10, 10], pads=[1, 1, 1, 1]),
    "pads_negative": dict(pads=[-1, -1, -1, -1]), "pads_min": dict(pads=[-2**63, 0, 0, 0]), "pads_one": dict(pads=[1]), "pads_long": dict(pads=[0] * 6),
    "pads_none": dict(pads=[]), "pads_of_a_million": dict(pads=[0] * 1_000_000), "pads_exactly_all": dict(pads=[4, 4, 3, 3]),
    "pads_with_valid": dict(pads=[1, 1, 1, 1], auto_pad="VALID"), "auto_pad_empty": dict(auto_pad=""), "auto_pad_lower_case": dict(auto_pad="same_upper"),
    "same_with_stride_beyond_kernel": dict(strides=[5, 5], auto_pad="SAME_UPPER"), "same_with_output_padding": dict(strides=[2, 2], auto_pad="SAME_LOWER", output_padding=[1, 1]),
    "auto_pad_is_number": dict(auto_pad=1), "group_is_real": dict(group=1.0), "group_overflow": dict(group=2**62), "group_min": dict(group=-2**63),
    "dilations_short": dict(dilations=[1]), "dilations_long": dict(dilations=[1, 1, 1]), "dilation_min": dict(dilations=[-2**63, 1]),
    "dilation_and_stride_huge": dict(dilations=[2**31, 1], strides=[2**31, 1]), "kernel_shape_zero": dict(kernel_shape=[0, 3]),
    "kernel_shape_negative": dict(kernel_shape=[-3, 3]), "kernel_shape_long": dict(kernel_shape=[3, 3, 3]), "kernel_shape_huge": dict(kernel_shape=[2**62, 3]),
    "stride_max": dict(strides=[2**63 - 1, 1]), "strides_none": dict(strides=[]),
})
CASES["deconv_weight_without_channels"] = lambda: deconv(w=(0, 3, 3, 3))
CASES["deconv_weight_without_outputs"] = lambda: deconv(w=(2, 0, 3, 3))
CASES["deconv_kernel_of_nothing"] = lambda: deconv(w=(2, 3, 0, 3))
CASES["deconv_rank_1_weight_1"] = lambda: deconv(w=(2,), x=(1,))
CASES["deconv_rank_9"] = lambda: deconv(w=(2,) * 9, x=(1, 2) + (5,) * 7)
CASES["deconv_no_channels_in"] = lambda: deconv(x=(1, 0, 5, 5))
CASES["deconv_no_pixels"] = lambda: deconv(x=(1, 2, 0, 5))
CASES["deconv_no_batch"] = lambda: deconv(x=(0, 2, 5, 5))
CASES["deconv_groups_and_channels"] = lambda: deconv(w=(3, 3, 3, 3), x=(1, 3, 5, 5), group=2)
CASES["deconv_bias_scalar"] = lambda: deconv(bias=())
CASES["deconv_bias_empty"] = lambda: deconv(bias=(0,))
CASES["deconv_volume_wraps"] = lambda: deconv(w=(2, 3, 3, 3, 3), x=(2**13, 2, 2**11, 2**11, 2**11), strides=[2**9] * 3)
CASES["deconv_batch_overflow"] = lambda: deconv(x=(2**62, 2, 5, 5))
CASES["deconv_stride_2_31_on_two_pixels"] = lambda: deconv(x=(1, 2, 2, 2), strides=[2**31, 1])
CASES["deconv_crop_of_symbol"] = lambda: deconv(x=("N", 2, "H", "W"), pads=[9, 9, 9, 9])


def deconv_with(edit):
    made = deconv()
    edit(made)
    return made


def _set(made, index, **changed):
    made.graph.initializer[index].CopyFrom(weight("w", 2, 3, 3, 3, **changed))


CASES["deconv_weight_f64"] = lambda: deconv_with(lambda made: _set(made, 0, dtype=np.float64))
CASES["deconv_weight_int"] = lambda: deconv_with(lambda made: _set(made, 0, dtype=np.int32))
CASES["deconv_weight_bool"] = lambda: deconv_with(lambda made: _set(made, 0, dtype=np.bool_))
CASES["deconv_weight_missing"] = lambda: deconv_with(lambda made: made.graph.node[0].input.pop())
CASES["deconv_weight_unnamed"] = lambda: deconv_with(lambda made: made.graph.node[0].input.__setitem__(1, ""))
CASES["deconv_data_unnamed"] = lambda: deconv_with(lambda made: made.graph.node[0].input.__setitem__(0, ""))
CASES["deconv_four_operands"] = lambda: deconv_with(lambda made: made.graph.node[0].input.extend(["x", "x"]))
CASES["deconv_two_results"] = lambda: deconv_with(lambda made: made.graph.node[0].output.append("z"))
CASES["deconv_of_integers"] = lambda: model([node("ConvTranspose", "x,w", name="up")], [weight("w", 2, 3, 3, 3, dtype=np.int64)], [info("x", dtype=INT64)])
CASES["deconv_weight_is_input_of_rank_3"] = lambda: model([node("ConvTranspose", "x,w", name="up")], [], [info("x"), info("w", (2, 3, 3))])
CASES["deconv_weight_is_input_of_other_channels"] = lambda: model([node("ConvTranspose", "x,w", name="up")], [], [info("x"), info("w", (7, 3, 3, 3))])
CASES["deconv_weight_is_output"] = lambda: model([node("ConvTranspose", "x,w", name="up")], [weight("w", 2, 3, 3, 3)], outputs=[info("y", None), info("w", None)])


@case
def deconv_strides_twice():
    made = deconv(strides=[1, 1])
    made.graph.node[0].attribute.append(helper.make_attribute("strides", [2, 2]))
    return made


@case
def deconv_strides_without_type():
    made = deconv(strides=[2, 2])
    made.graph.node[0].attribute[0].type = 0
    return made


@case
def deconv_strides_is_tensor():
    return model([node("ConvTranspose", "x,w", name="up", strides=weight("s", 2, dtype=np.int64))], [weight("w", 2, 3, 3, 3)])


@case
def deconv_strides_is_graph():
    return model([node("ConvTranspose", "x,w", name="up", strides=branch("Relu"))], [weight("w", 2, 3, 3, 3)])


@case
def deconv_bias_is_int():
    made = deconv(bias=(3,))
    made.graph.initializer[1].CopyFrom(weight("b", 3, dtype=np.int64))
    return made


@case
def attribute_twice():
    made = model([node("LeakyRelu", alpha=0.1)])
    made.graph.node[0].attribute.append(helper.make_attribute("alpha", 0.2))
    return made


@case
def attribute_reference_outside_function():
    made = model([node("LeakyRelu", alpha=0.1)])
    made.graph.node[0].attribute[0].ref_attr_name = "a"
    return made
