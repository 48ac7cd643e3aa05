"""Hostile and broken ONNX models, each with the whole message that must refuse it.

    hostile_models.py FOLDER

Writes FOLDER/NAME/model.onnx (with what lies beside it) and FOLDER/NAME/expected.txt for tests/import/hostile_test.cpp. An empty
expected.txt stands for a model that is odd but legal.
"""
import json
import os
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CASES = {}
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
MESSAGES = pathlib.Path(__file__).with_name("hostile_models.json")


def case(function):
    CASES[function.__name__] = function
    return function


def info(name, shape=(1, 2, 5, 5), dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def weight(name, *shape, value=1.0, dtype=np.float32):
    return numpy_helper.from_array(np.full(shape, value, dtype), name)


def model(nodes, initializers=(), inputs=None, outputs=None, opset=17, ir_version=8, functions=(), domains=()):
    graph = helper.make_graph(list(nodes), "g", inputs if inputs is not None else [info("x")],
                              outputs if outputs is not None else [info("y", None)], list(initializers))
    imports = [helper.make_opsetid("", opset)] if opset is not None else []
    imports += [helper.make_opsetid(name, 1) for name in domains]
    made = helper.make_model(graph, opset_imports=imports, functions=list(functions))
    if opset is None:
        del made.opset_import[:]
    made.ir_version = ir_version
    return made


def node(op, inputs="x", outputs="y", name="n", domain="", **attributes):
    made = helper.make_node(op, inputs.split(","), outputs.split(","), name=name, domain=domain, **{key: value for key, value in attributes.items() if value != []})
    made.attribute.extend(onnx.AttributeProto(name=key, type=onnx.AttributeProto.INTS) for key, value in attributes.items() if value == [])
    return made


def deconv(w=(2, 3, 3, 3), x=(1, 2, 5, 5), bias=None, **attributes):
    initializers = [weight("w", *w)] + ([weight("b", *bias)] if bias is not None else [])
    return model([node("ConvTranspose", "x,w" + (",b" if bias is not None else ""), name="up", **attributes)], initializers, [info("x", x)])


# ---- attributes of convolutions


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


# ---- the container


@case
def no_opset():
    return model([node("Relu")], opset=None)


CASES["opset_0"] = lambda: model([node("Relu")], opset=0)
CASES["opset_negative"] = lambda: model([node("Relu")], opset=-1)
CASES["opset_2_31"] = lambda: model([node("Relu")], opset=2**31)
CASES["opset_6"] = lambda: model([node("Relu")], opset=6)
CASES["ir_version_0"] = lambda: model([node("Relu")], ir_version=0)
CASES["ir_version_999"] = lambda: model([node("Relu")], ir_version=999)
CASES["no_outputs"] = lambda: model([node("Relu")], outputs=[])
CASES["operator_unknown"] = lambda: model([node("Rleu")])
CASES["operator_of_other_domain"] = lambda: model([node("Magic", domain="org.example")], domains=["org.example"])
CASES["operators_missing_together"] = lambda: model(
    [node("StringNormalizer", "x", "a", name="l"), node("ImageDecoder", "a", "b", name="e"), node("Rleu", "b", "c", name="r"), node("StringNormalizer", "c", "y", name="l2")])
CASES["loop"] = lambda: model([node("Loop", "x", "y", name="again")])
CASES["operator_too_new"] = lambda: model([node("Gelu")], opset=17)
CASES["upsample_after_10"] = lambda: model([node("Upsample", "x,s")], [weight("s", 4)], opset=11)
CASES["cycle"] = lambda: model([node("Add", "x,b", "a", name="first"), node("Relu", "a", "b", name="second"), node("Relu", "b", "y", name="third")])
CASES["self_loop"] = lambda: model([node("Add", "x,y", "y", name="self")])
CASES["name_unknown"] = lambda: model([node("Relu", "nothing", "y")])
CASES["name_twice"] = lambda: model([node("Relu", "x", "y", name="a"), node("Tanh", "x", "y", name="b")])
CASES["input_twice"] = lambda: model([node("Relu")], inputs=[info("x"), info("x")])
CASES["output_twice"] = lambda: model([node("Relu")], outputs=[info("y", None), info("y", None)])
CASES["output_unknown"] = lambda: model([node("Relu", "x", "z")])
CASES["too_many_operands"] = lambda: model([node("Relu", "x,x")])
CASES["operand_missing"] = lambda: model([node("Add", "x")])
CASES["input_without_shape"] = lambda: model([node("Relu")], inputs=[info("x", None)])
CASES["input_negative_size"] = lambda: model([node("Relu")], inputs=[info("x", (1, -7))])
CASES["input_rank_9"] = lambda: model([node("Relu")], inputs=[info("x", (1,) * 9)])
CASES["input_string"] = lambda: model([node("Relu")], inputs=[info("x", (1,), TensorProto.STRING)])
CASES["input_huge"] = lambda: model([node("Concat", "x,x", axis=0)], inputs=[info("x", (2**31, 2**31))])


@case
def input_sequence():
    value = helper.make_tensor_sequence_value_info("x", FLOAT, None)
    return model([node("SequenceAt", "x")], inputs=[value])


@case
def names_with_control_characters():
    made = model([node("Relu", "no\x1b[31m\x00pe", "y", name="bad\nname")])
    return made


@case
def opset_twice():
    made = model([node("Relu")])
    made.opset_import.append(helper.make_opsetid("ai.onnx", 12))
    return made


@case
def function_calls_itself():
    body = helper.make_function("f", "F", ["a"], ["b"], [node("F", "a", "b", domain="f")], [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)])
    return model([node("F", domain="f")], functions=[body], domains=["f"])


@case
def functions_call_each_other():
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    functions = [helper.make_function("f", "A", ["a"], ["b"], [node("B", "a", "b", domain="f")], imports),
                 helper.make_function("f", "B", ["a"], ["b"], [node("A", "a", "b", domain="f")], imports)]
    return model([node("A", domain="f")], functions=functions, domains=["f"])


def chain_of_functions(count, calls):
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    functions = []
    for i in range(count):
        if i + 1 == count:
            nodes = [node("Relu", "v0", "out")]
        else:
            nodes = [node(f"F{i + 1}", f"v{k}", f"v{k + 1}" if k + 1 < calls else "out", domain="f") for k in range(calls)]
        functions.append(helper.make_function("f", f"F{i}", ["v0"], ["out"], nodes, imports))
    return model([node("F0", domain="f")], functions=functions, domains=["f"])


CASES["functions_double_40_times"] = lambda: chain_of_functions(40, 2)
CASES["functions_101_deep"] = lambda: chain_of_functions(101, 1)
CASES["functions_100_deep"] = lambda: chain_of_functions(100, 1)
CASES["functions_10001"] = lambda: model([node("Relu")], functions=[
    helper.make_function("f", f"F{i}", ["a"], ["b"], [node("Relu", "a", "b")], [helper.make_opsetid("", 17)]) for i in range(10001)], domains=["f"])


@case
def function_attribute_missing():
    relu = node("LeakyRelu", "a", "b", alpha=0.1)
    relu.attribute[0].CopyFrom(helper.make_attribute_ref("alpha", onnx.AttributeProto.FLOAT))
    relu.attribute[0].ref_attr_name = "slope"
    body = helper.make_function("f", "F", ["a"], ["b"], [relu], [helper.make_opsetid("", 17)], ["slope"])
    return model([node("F", domain="f", name="call")], functions=[body], domains=["f"])


def raw(size, shape=(2,), dtype=FLOAT, **fields):
    tensor = TensorProto(name="w", data_type=dtype, dims=list(shape), raw_data=b"\0" * size)
    return model([node("Add", "x,w")], [tensor], [info("x", (2,))])


CASES["raw_data_short"] = lambda: raw(7)
CASES["raw_data_long"] = lambda: raw(9)
CASES["raw_data_none"] = lambda: raw(0)
CASES["raw_data_int4_odd"] = lambda: raw(1, (3,), TensorProto.INT4)
CASES["initializer_string"] = lambda: model([node("Identity", "w")], [helper.make_tensor("w", TensorProto.STRING, [1], [b"a"])])
CASES["initializer_negative_size"] = lambda: raw(8, (-2,))
CASES["initializer_overflow"] = lambda: raw(8, (2**62, 4))
CASES["initializer_undefined_type"] = lambda: raw(8, (2,), 0)
CASES["initializer_twice"] = lambda: model([node("Add", "x,w")], [weight("w", 5), weight("w", 5)])


@case
def raw_data_and_typed_data():
    made = raw(8)
    made.graph.initializer[0].float_data.extend([1.0, 2.0])
    return made


def sparse(values, indices, shape):
    tensor = helper.make_sparse_tensor(helper.make_tensor("w", FLOAT, [len(values)], values), helper.make_tensor("i", INT64, [len(indices)], indices), list(shape))
    made = model([node("Add", "x,w")], inputs=[info("x", (5,))])
    made.graph.sparse_initializer.append(tensor)
    return made


CASES["sparse_index_beyond"] = lambda: sparse([1.0], [5], (5,))
CASES["sparse_index_negative"] = lambda: sparse([1.0], [-1], (5,))
CASES["sparse_unsorted"] = lambda: sparse([1.0, 2.0], [3, 1], (5,))
CASES["sparse_bomb"] = lambda: sparse([1.0], [0], (2**20, 2**20))
CASES["sparse_fine"] = lambda: sparse([1.0, 2.0], [1, 3], (5,))


def external(beside=None, target="w", **entries):
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    made = model([node("Add", "x,w")], inputs=[info("x", (2,))])
    if target == "constant":
        made.graph.node.insert(0, helper.make_node("Constant", [], ["w"], name="c", value=tensor))
    else:
        made.graph.initializer.append(tensor)
    return made, beside


def plain(folder):
    (folder / "w.bin").write_bytes(bytes(8))


CASES["external_fine"] = lambda: external(plain, location="w.bin")
CASES["external_parent"] = lambda: external(location="../secret")
CASES["external_parent_in_constant"] = lambda: external(target="constant", location="../secret")
CASES["external_parent_inside"] = lambda: external(location="a/../../secret")
CASES["external_absolute"] = lambda: external(location="/etc/passwd")
CASES["external_device"] = lambda: external(location="/dev/zero")
CASES["external_missing_file"] = lambda: external(location="w.bin")
CASES["external_symlink"] = lambda: external(lambda folder: os.symlink("/etc/passwd", folder / "w.bin"), location="w.bin")
CASES["external_symlinked_folder"] = lambda: external(lambda folder: os.symlink("/etc", folder / "d"), location="d/passwd")
CASES["external_fifo"] = lambda: external(lambda folder: os.mkfifo(folder / "w.bin"), location="w.bin")
CASES["external_folder"] = lambda: external(lambda folder: (folder / "w.bin").mkdir(), location="w.bin")
CASES["external_hard_link"] = lambda: external(lambda folder: (plain(folder), os.link(folder / "w.bin", folder / "v.bin")), location="w.bin")
CASES["external_offset_negative"] = lambda: external(plain, location="w.bin", offset="-1")
CASES["external_offset_beyond"] = lambda: external(plain, location="w.bin", offset="4")
CASES["external_offset_overflow"] = lambda: external(plain, location="w.bin", offset=str(2**63))
CASES["external_length_wrong"] = lambda: external(plain, location="w.bin", length=str(2**60))
CASES["external_key_unknown"] = lambda: external(plain, location="w.bin", __class__="x")

# ---- files that are no models, or not whole ones

CASES["file_empty"] = lambda: b""
CASES["file_of_zeros"] = lambda: bytes(4096)
CASES["file_of_text"] = lambda: b"<!DOCTYPE html>\n<html><body>404: not found</body></html>\n"
CASES["file_of_git_lfs"] = lambda: b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"
CASES["file_cut"] = lambda: deconv().SerializeToString()[:-20]
CASES["file_with_tail"] = lambda: deconv().SerializeToString() + b"\xff" * 9
CASES["varint_of_eleven_bytes"] = lambda: b"\x08" + b"\xff" * 10 + b"\x01"
CASES["length_beyond_file"] = lambda: b"\x3a\xff\xff\xff\xff\x07"
CASES["groups_nested_100000_deep"] = lambda: b"\x0b" * 100_000 + b"\x0c" * 100_000


def nested_branches(depth):
    inner = branch("Relu")
    for level in range(depth):
        condition = helper.make_node("If", ["c"], [f"i{level}"], name=f"if{level}", then_branch=inner, else_branch=branch("Neg"))
        inner = helper.make_graph([condition], f"g{level}", [], [info(f"i{level}", None)])
    return model([*inner.node], inputs=[info("x"), info("c", (), TensorProto.BOOL)], outputs=[info(inner.output[0].name, None)])


CASES["branches_20_deep"] = lambda: nested_branches(20)


@case
def branches_beyond_the_parser():
    # Written by hand: protobuf itself refuses to build it.
    graph = b""
    for _ in range(3000):
        attribute = b"\x0a\x01g\x32" + varint(len(graph)) + graph
        inner = b"\x22\x02If\x2a" + varint(len(attribute)) + attribute
        graph = b"\x0a" + varint(len(inner)) + inner
    return b"\x08\x08\x3a" + varint(len(graph)) + graph


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


@case
def function_twice():
    body = helper.make_function("f", "F", ["a"], ["b"], [node("Relu", "a", "b")], [helper.make_opsetid("", 17)])
    return model([node("F", domain="f")], functions=[body, body], domains=["f"])


@case
def function_with_unknown_name():
    body = helper.make_function("f", "F", ["a"], ["b"], [node("Relu", "c", "b")], [helper.make_opsetid("", 17)])
    return model([node("F", domain="f", name="call")], functions=[body], domains=["f"])


@case
def function_without_result():
    body = helper.make_function("f", "F", ["a"], ["b"], [node("Relu", "a", "c")], [helper.make_opsetid("", 17)])
    return model([node("F", domain="f", name="call")], functions=[body], domains=["f"])


@case
def function_with_too_many_operands():
    body = helper.make_function("f", "F", ["a"], ["b"], [node("Relu", "a", "b")], [helper.make_opsetid("", 17)])
    return model([node("F", "x,x", domain="f", name="call")], functions=[body], domains=["f"])


@case
def initializer_in_segments():
    made = raw(8)
    made.graph.initializer[0].segment.begin = 0
    made.graph.initializer[0].segment.end = 2
    return made


@case
def initializer_of_typed_data_long():
    made = raw(0)
    made.graph.initializer[0].ClearField("raw_data")
    made.graph.initializer[0].float_data.extend([1.0] * 3)
    return made


@case
def initializer_without_data():
    made = raw(0)
    made.graph.initializer[0].ClearField("raw_data")
    return made


@case
def initializer_of_wrong_list():
    made = raw(0)
    made.graph.initializer[0].ClearField("raw_data")
    made.graph.initializer[0].int64_data.extend([1, 2])
    return made


@case
def initializer_without_name():
    made = raw(8)
    made.graph.initializer[0].name = ""
    return made


@case
def graph_missing():
    made = model([node("Relu")])
    made.ClearField("graph")
    return made


@case
def training_info():
    made = model([node("Relu")])
    made.training_info.add()
    return made


@case
def names_not_utf8():
    return model([node("Relu", name="nnn")]).SerializeToString().replace(b"nnn", b"\xff\xfe\x80")


# ---- operators with data that ask for too much or for nonsense


def with_shape(op, values, name="n", **attributes):
    return model([node(op, "x,s", name=name, **attributes)], [numpy_helper.from_array(np.array(values, np.int64), "s")])


CASES["reshape_two_open"] = lambda: with_shape("Reshape", [-1, -1])
CASES["reshape_negative"] = lambda: with_shape("Reshape", [-2, 25])
CASES["reshape_wrong_count"] = lambda: with_shape("Reshape", [7, 7])
CASES["reshape_zero_beyond_rank"] = lambda: with_shape("Reshape", [1, 2, 5, 5, 0])
CASES["reshape_open_with_zero"] = lambda: with_shape("Reshape", [0, -1, 2**62, 2**62])
CASES["expand_huge"] = lambda: with_shape("Expand", [2**40, 1, 1, 1, 1, 1])
CASES["expand_mismatch"] = lambda: with_shape("Expand", [1, 3, 5, 5])
CASES["tile_huge"] = lambda: with_shape("Tile", [2**62, 2**62, 1, 1])
CASES["tile_negative"] = lambda: with_shape("Tile", [-1, 1, 1, 1])
CASES["pad_odd"] = lambda: with_shape("Pad", [1, 1, 1])
CASES["pad_huge"] = lambda: with_shape("Pad", [2**62, 0, 0, 0, 2**62, 0, 0, 0])
CASES["unsqueeze_twice"] = lambda: with_shape("Unsqueeze", [1, 1])
CASES["unsqueeze_far"] = lambda: with_shape("Unsqueeze", [9])
CASES["squeeze_not_1"] = lambda: with_shape("Squeeze", [1])
CASES["reduce_axis_beyond"] = lambda: with_shape("ReduceSum", [4])
CASES["split_wrong_sum"] = lambda: model([node("Split", "x,s", "y,z", axis=1)], [numpy_helper.from_array(np.array([1, 2], np.int64), "s")])
CASES["split_uneven"] = lambda: model([node("Split", "x", "y,z", axis=2)])
CASES["constant_of_shape_huge"] = lambda: model([node("ConstantOfShape", "s")], [numpy_helper.from_array(np.array([2**40, 2**40], np.int64), "s")])
CASES["range_step_zero"] = lambda: model([node("Range", "a,b,c")], [numpy_helper.from_array(np.int64(v), n) for v, n in ((0, "a"), (9, "b"), (0, "c"))])
CASES["range_float_huge"] = lambda: model([node("Range", "a,b,c")], [numpy_helper.from_array(np.float32(v), n) for v, n in ((0, "a"), (1e30, "b"), (1, "c"))])
CASES["slice_step_zero"] = lambda: model([node("Slice", "x,a,a,a,a")], [numpy_helper.from_array(np.array([0], np.int64), "a")])
CASES["slice_lengths"] = lambda: model([node("Slice", "x,a,b")], [numpy_helper.from_array(np.zeros(n, np.int64), s) for n, s in ((1, "a"), (2, "b"))])
CASES["transpose_not_permutation"] = lambda: model([node("Transpose", perm=[0, 0, 1, 2])])
CASES["concat_axis_beyond"] = lambda: model([node("Concat", "x,x", axis=4)])
CASES["gather_axis_beyond"] = lambda: with_shape("Gather", [0], axis=7)
CASES["pool_kernel_zero"] = lambda: model([node("MaxPool", kernel_shape=[0, 2])])
CASES["pool_without_kernel"] = lambda: model([node("MaxPool")])
CASES["pool_larger_than_input"] = lambda: model([node("MaxPool", kernel_shape=[9, 9])])
CASES["depth_to_space_zero"] = lambda: model([node("DepthToSpace", blocksize=0)])
CASES["depth_to_space_channels"] = lambda: model([node("DepthToSpace", blocksize=2)])
CASES["resize_scale_zero"] = lambda: model([node("Resize", "x,,s")], [weight("s", 4, value=0.0)])
CASES["resize_neither"] = lambda: model([node("Resize", "x")])
CASES["resize_huge"] = lambda: model([node("Resize", "x,,s")], [weight("s", 4, value=1e8)])
CASES["group_norm_groups"] = lambda: model([node("GroupNormalization", "x,s,s", num_groups=3)], [weight("s", 2)], opset=21)
CASES["batch_norm_training"] = lambda: model([node("BatchNormalization", "x,s,s,s,s", training_mode=1)], [weight("s", 2)])
CASES["batch_norm_length"] = lambda: model([node("BatchNormalization", "x,s,s,s,s")], [weight("s", 3)])
CASES["cast_to_unknown"] = lambda: model([node("Cast", to=99)])
CASES["cast_to_complex"] = lambda: model([node("Cast", to=TensorProto.COMPLEX64)])
CASES["constant_without_value"] = lambda: model([helper.make_node("Constant", [], ["y"], name="c")])
CASES["if_condition_not_bool"] = lambda: model([node("If", then_branch=branch("Relu"), else_branch=branch("Tanh"))])
CASES["if_without_else"] = lambda: model([node("If", "c", then_branch=branch("Relu"))], [weight("c", dtype=np.bool_)])


def branch(op, depth=0):
    nodes = [node(op, "x", f"b{depth}")]
    return helper.make_graph(nodes, "branch", [], [info(f"b{depth}", None)])


@case
def chain_of_a_million():
    made = model([], inputs=[info("x", (1,))])
    names = ["x", *(f"v{i}" for i in range(999_999)), "y"]
    made.graph.node.extend(onnx.NodeProto(op_type="Neg", input=[a], output=[b]) for a, b in zip(names, names[1:]))
    return made


@case
def fan_out_of_a_hundred_thousand():
    return model([*(onnx.NodeProto(op_type="Neg", input=["x"], output=[f"v{i}"]) for i in range(100_000)), node("Relu")], inputs=[info("x", (1,))])


@case
def name_of_ten_million():
    return model([node("Relu", name="n" * 10_000_000), node("Rleu", "y", "z", name="m" * 10_000_000)])


@case
def sequence_of_one_by_one():
    """Each insertion makes a new list."""
    nodes = [helper.make_node("SequenceEmpty", [], ["s0"])]
    nodes += [helper.make_node("SequenceInsert", [f"s{i}", "x"], [f"s{i + 1}"], name=f"n{i}") for i in range(20_000)]
    return model([*nodes, node("SequenceAt", "s20000,p")], [numpy_helper.from_array(np.array(0), "p")])


@case
def sequence_split_too_fine():
    return model([node("SplitToSequence", "x", "s"), node("SequenceAt", "s,p")], [numpy_helper.from_array(np.array(0), "p")], [info("x", (1 << 30, 1))])


@case
def sequence_split_by_zero():
    return model([node("SplitToSequence", "x,k", "s"), node("SequenceAt", "s,k")], [numpy_helper.from_array(np.array(0), "k")])


@case
def sequence_split_beyond_the_axis():
    weights = [numpy_helper.from_array(np.array([4, 4, 1 << 62]), "k"), numpy_helper.from_array(np.array(0), "p")]
    return model([node("SplitToSequence", "x,k", "s", axis=3), node("SequenceAt", "s,p", name="at")], weights)


@case
def sequence_at_of_a_tensor():
    return model([node("SequenceAt", "x,p")], [numpy_helper.from_array(np.array(0), "p")])


@case
def sequence_as_output():
    return model([node("SequenceConstruct", "x,x")])


@case
def list_of_a_million_strides():
    return deconv(strides=[1] * 1_000_000)


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    messages = json.loads(MESSAGES.read_text()) if MESSAGES.exists() else {}
    for name, build in CASES.items():
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.rmdir() if old.is_dir() and not old.is_symlink() else old.unlink()
        made, beside = build(), None
        if isinstance(made, tuple):
            made, beside = made
        (folder / "model.onnx").write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
        if beside is not None:
            beside(folder)
        (folder / "expected.txt").write_text(messages.get(name, "no message is recorded in hostile_models.json"))
    print(f"{len(CASES)} models")
    return 0


if __name__ == "__main__":
    sys.exit(main())
