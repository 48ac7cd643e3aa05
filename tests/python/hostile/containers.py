"""Opsets, names, functions, and the tensors of a model, also those in files beside it."""

import os

import onnx
from onnx import TensorProto, helper

from hostile.parts import CASES, FLOAT, INT64, case, info, model, node, weight, raw


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
