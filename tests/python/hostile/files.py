"""Files that are no models, or not whole ones."""

from onnx import TensorProto, helper

from hostile.parts import CASES, branch, case, deconv, info, model, node, raw, varint

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
