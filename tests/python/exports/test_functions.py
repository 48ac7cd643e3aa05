"""Exports of models with functions of their own: what a rule rewrites is taken out of its function, call by call; all else stays."""
from __future__ import annotations

import random

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from drawn_models import Case, draw
from engines import need, onnxruntime
from onnx import TensorProto, helper, numpy_helper
from rule_cases import CASES, output_padding_from_stride_on
from trials import exported, verdict

import polyphase as package

TARGETS = ("onnx", "onnxruntime", "openvino", "tensorrt")


def referring(name: str, to: str, kind) -> onnx.AttributeProto:
    out = onnx.AttributeProto(name=name, type=kind)
    out.ref_attr_name = to
    return out


def in_functions(model: onnx.ModelProto, rng: random.Random) -> onnx.ModelProto:
    """The nodes of a model in a function, with names that the graph has too; attributes from the call, the function's own values, or written out; in a
    branch, and behind another function."""
    names = ["y", "x", "up", "w", "b"]
    rng.shuffle(names)
    operands = [value.name for value in [*model.graph.input, *model.graph.initializer]]
    operands = list(dict.fromkeys(operands))
    formal = {name: f"{names[i % 5]}{'' if i < 5 else i}" for i, name in enumerate(operands)}
    nodes, given, own = [], [], []
    for node in model.graph.node:
        inner = onnx.NodeProto()
        inner.CopyFrom(node)
        del inner.attribute[:]
        for attribute in node.attribute:
            way = rng.choice(("written", "call", "own"))
            if way == "written":
                inner.attribute.append(attribute)
                continue
            inner.attribute.append(referring(attribute.name, f"the_{attribute.name}", attribute.type))
            value = onnx.AttributeProto()
            value.CopyFrom(attribute)
            value.name = f"the_{attribute.name}"
            (given if way == "call" else own).append(value)
        inner.input[:] = [formal.get(name, f"in/{name}") if name else "" for name in node.input]
        inner.output[:] = ["result" if name == "y" else f"in/{name}" for name in node.output]
        if rng.random() < 0.3:
            inner.name = ""
        nodes.append(inner)
    if rng.random() < 0.4:  # both branches; which one runs depends on the data
        choice = [helper.make_node("Constant", [], ["zero"], value=numpy_helper.from_array(np.float32(0))), helper.make_node("Cast", [formal["x"]], ["real"], to=TensorProto.FLOAT),
                  helper.make_node("ReduceMax", ["real"], ["most"], keepdims=0), helper.make_node("Greater", ["most", "zero"], ["flag"])]
        branches = []
        for which in ("then", "else"):
            inside = []
            for node in nodes:
                copy = onnx.NodeProto()
                copy.CopyFrom(node)
                copy.output[:] = [f"{name}_{which}" for name in node.output]
                copy.input[:] = [f"{name}_{which}" if name.startswith("in/") else name for name in node.input]
                inside.append(copy)
            branches.append(helper.make_graph(inside, which, [], [onnx.ValueInfoProto(name=f"result_{which}")]))
        nodes = [*choice, helper.make_node("If", ["flag"], ["result"], "if", then_branch=branches[0], else_branch=branches[1])]
    used = [name for name in operands if any(formal[name] in names_read(node) for node in nodes)]
    opset = [entry for entry in model.opset_import]
    functions = [helper.make_function("mine", "Up", [formal[name] for name in used], ["result"], nodes, opset, [value.name for value in given], own)]
    call = helper.make_node("Up", used, ["y"], rng.choice(("", "call", "up")), domain="mine")
    call.attribute.extend(given)
    mine = helper.make_opsetid("mine", 1)
    if rng.random() < 0.4:
        inner = onnx.NodeProto()
        inner.CopyFrom(call)
        inner.output[:] = [f"{name}'" for name in call.output]
        del inner.attribute[:]
        inner.attribute.extend(referring(value.name, f"outer_{value.name}", value.type) for value in given)
        functions.append(helper.make_function("mine", "Outer", used, ["z"], [inner, helper.make_node("Identity", ["y'"], ["z"], "last")], [*opset, mine],
                                              [f"outer_{value.name}" for value in given]))
        for value in call.attribute:
            value.name = f"outer_{value.name}"
        call.op_type, call.output[:] = "Outer", ["y"]
    out = onnx.ModelProto()
    out.CopyFrom(model)
    del out.graph.node[:]
    out.graph.node.append(call)
    out.opset_import.append(mine)
    out.functions.extend(functions)
    return out


def names_read(node: onnx.NodeProto) -> set[str]:
    inside = [names_read(inner) for attribute in node.attribute for inner in attribute.g.node]
    return set(node.input).union(*inside)


@pytest.mark.parametrize("target", TARGETS)
def test_geometries_in_functions_are_right_after_the_export(target, full, slice_seed, tmp_path):
    need(target, full)
    rng = random.Random(slice_seed)
    rewritten = 0
    for seed in range(slice_seed * 1_000_000, slice_seed * 1_000_000 + (600 if full else 40)):
        case = draw(seed, seed % 2 == 1, computed=target != "onnxruntime")
        _, plain = exported(target, case.model, tmp_path)
        model = in_functions(case.model, rng)
        made, report = exported(target, model, tmp_path)
        assert {change["rule"] for change in report["changes"]} == {change["rule"] for change in plain["changes"]}, case.label
        assert bool(report["notes"]) == bool(report["changes"]) and report["nodes"] == 1
        if not report["changes"]:
            assert made == (tmp_path / "before.onnx").read_bytes()
            continue
        said = verdict(target, made, case.inputs, case.right)
        assert said == "right" and not onnx.load_model_from_string(made).functions, (case.label, said, model)
        rewritten += 1
    assert rewritten >= (100 if full else 5)


@pytest.mark.parametrize("target, rule", [pair for pair in CASES if pair[0] in TARGETS])
def test_every_rule_reaches_into_functions(target, rule, full, tmp_path):
    need(target, full)
    case = CASES[target, rule]()
    model = in_functions(case.model, random.Random(7))
    (tmp_path / "before.onnx").write_bytes(model.SerializeToString())
    found = package.check_for(tmp_path / "before.onnx", target)
    assert found and all("/" in finding["node"] for finding in found)
    if any(info["name"] == rule and not info["rewrites"] for info in next(one for one in package.export_targets() if one["name"] == target)["rules"]):
        with pytest.raises(package.UnsupportedError, match=f"does not take it \\(rule {rule}\\)"):
            exported(target, model, tmp_path)
        return
    made, report = exported(target, model, tmp_path)
    assert verdict(target, made, case.inputs, case.right) == "right" and rule in [change["rule"] for change in report["changes"]]


def several_calls() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Three calls of one function, of which ONNX Runtime refuses the second; a function beside it, called also by the first."""
    act = helper.make_function("mine", "Act", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"], "relu")], [helper.make_opsetid("", 17)])
    up = helper.make_node("ConvTranspose", ["a", "k"], ["c"], "up", dilations=[3])
    up.attribute.append(referring("output_padding", "more", onnx.AttributeProto.INTS))
    body = [up, helper.make_node("Act", ["c"], ["d"], "act", domain="mine")]
    function = helper.make_function("mine", "Up", ["a", "k"], ["d"], body, [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)], ["more"])
    nodes = [helper.make_node("Up", ["x", "w"], ["first"], "one", domain="mine", more=[0]), helper.make_node("Act", ["first"], ["second"], "act", domain="mine"),
             helper.make_node("Up", ["second", "w"], ["third"], "two", domain="mine", more=[2]), helper.make_node("Up", ["third", "w"], ["y"], "three", domain="mine", more=[0])]
    w = np.random.default_rng(1).integers(-3, 4, (2, 2, 3)).astype(np.float32)
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, "n"])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(w, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)], ir_version=8, functions=[act, function])
    return model, {"x": np.random.default_rng(2).integers(-3, 4, (1, 2, 5)).astype(np.float32)}


def test_other_calls_and_functions_stay_byte_for_byte(tmp_path):
    before, inputs = several_calls()
    made, report = exported("onnxruntime", before, tmp_path)
    after = onnx.load_model_from_string(made)
    assert [(change["node"], change["rule"]) for change in report["changes"]] == [("two/up", "output-padding-from-stride-on")] and report["nodes"] == 4
    assert report["notes"] == ["the call 'two' of the function 'Up' became the function's nodes, of which a rule rewrites some"]
    assert [(node.op_type, node.name) for node in after.graph.node] == [
        ("Up", "one"), ("Act", "act"), ("Pad", "two/up/with_zeros"), ("ConvTranspose", "two/up"), ("Act", "two/act"), ("Up", "three")]
    kept = [node.SerializeToString() for node in after.graph.node if "/" not in node.name]
    assert kept == [node.SerializeToString() for node in before.graph.node if node.name != "two"]
    assert [function.SerializeToString() for function in after.functions] == [function.SerializeToString() for function in before.functions]
    assert list(after.opset_import) == list(before.opset_import)
    wanted, w = torch.from_numpy(inputs["x"]), torch.from_numpy(numpy_helper.to_array(before.graph.initializer[0]).copy())
    for more in (0, 2, 0):
        wanted = torch.relu(torch.nn.functional.conv_transpose1d(wanted, w, dilation=3, output_padding=more))
    assert np.array_equal(onnxruntime(made, inputs), wanted.numpy())


def test_functions_that_nothing_calls_any_more_go(tmp_path):
    before, _ = several_calls()
    del before.graph.node[3], before.graph.node[0]
    before.graph.node[0].input[0], before.graph.node[1].output[0] = "x", "y"
    made, _ = exported("onnxruntime", before, tmp_path)
    assert [function.name for function in onnx.load_model_from_string(made).functions] == ["Act"]


def test_types_differ_from_call_to_call(tmp_path):
    """TensorRT takes two axes and not one."""
    function = helper.make_function("mine", "Up", ["a", "k"], ["c"], [helper.make_node("ConvTranspose", ["a", "k"], ["c"], "up")], [helper.make_opsetid("", 17)])
    nodes = [helper.make_node("Up", ["x", "w1"], ["y1"], "one", domain="mine"), helper.make_node("Up", ["z", "w2"], ["y2"], "two", domain="mine")]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 5]), helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 2, 5, 5])]
    weights = [numpy_helper.from_array(np.ones((2, 2, *[3] * axes), np.float32), f"w{axes}") for axes in (1, 2)]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y1", "y2")], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)], ir_version=8, functions=[function])
    made, report = exported("tensorrt", model, tmp_path)
    assert [(change["node"], change["rule"]) for change in report["changes"]] == [("one/up", "one-axis")]
    assert onnx.load_model_from_string(made).graph.node[-1].op_type == "Up"


@pytest.mark.parametrize("version", [11, 18, 22])
def test_a_function_in_another_opset(version, tmp_path):
    """ConvTranspose says the same in 11 and 17; 22 takes more types, and Pad of 18 has an operand that 17 does not know."""
    case = output_padding_from_stride_on()
    up = case.model.graph.node[0]
    function = helper.make_function("mine", "Up", list(up.input), ["y"], [up], [helper.make_opsetid("", version)])
    call = helper.make_node("Up", list(up.input), ["y"], "call", domain="mine")
    model = helper.make_model(helper.make_graph([call], "g", case.model.graph.input, case.model.graph.output, case.model.graph.initializer),
                              opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)], ir_version=8, functions=[function])
    if version == 22:
        with pytest.raises(package.UnsupportedError, match="'call'.*'Up', whose ConvTranspose is that of version 22, and the model has version 17"):
            exported("onnxruntime", model, tmp_path)
        assert not (tmp_path / "after.onnx").exists()
        return
    made, _ = exported("onnxruntime", model, tmp_path)
    assert np.array_equal(onnxruntime(made, case.inputs), case.right)


def test_operands_that_are_passed_on_and_results_that_are_left_out(tmp_path):
    """One tensor as two results, an operand as a result, a result that the call does not name, an operand that it does not give."""
    case = output_padding_from_stride_on()
    up = case.model.graph.node[0]
    up.output[0] = "c"
    body = [up, helper.make_node("Neg", ["c"], ["negative"], "neg"), helper.make_node("Clip", ["c", "least"], ["d"], "clip")]
    function = helper.make_function("mine", "Up", [*up.input, "least"], ["negative", "c", "c", "x", "d"], body, [helper.make_opsetid("", 17)])
    call = helper.make_node("Up", list(up.input), ["", "y", "again", "same", "d"], "call", domain="mine")
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * 3) for name in ("y", "again", "same", "d")]
    model = helper.make_model(helper.make_graph([call], "g", case.model.graph.input, outputs, case.model.graph.initializer),
                              opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)], ir_version=8, functions=[function])
    made, report = exported("onnxruntime", model, tmp_path)
    assert report["whole_model_compared"]
    session = ort.InferenceSession(made, providers=["CPUExecutionProvider"])
    for name, wanted in (("y", case.right), ("again", case.right), ("same", case.inputs["x"]), ("d", case.right)):
        assert np.array_equal(session.run([name], case.inputs)[0], wanted), name


def test_a_domain_that_only_the_function_imports(tmp_path):
    case = CASES["onnx", "computed-pads"]()
    model = in_functions(case.model, random.Random(3))
    own = [entry for entry in model.opset_import if entry.domain != "com.microsoft"]
    del model.opset_import[:]
    model.opset_import.extend(own)
    made, _ = exported("onnx", model, tmp_path)
    assert verdict("onnx", made, case.inputs, case.right) == "right"


def test_the_numbers_of_a_model_that_is_too_large_to_run(tmp_path):
    """Compared node by node, under the name of the call."""
    function = helper.make_function("mine", "Up", ["a", "k"], ["c"], [helper.make_node("ConvTranspose", ["a", "k"], ["c"], "up", dilations=[3, 3], output_padding=[2, 2])],
                                    [helper.make_opsetid("", 17)])
    weight = numpy_helper.from_array(np.ones((64, 64, 3, 3), np.float32), "w")
    graph = helper.make_graph([helper.make_node("Up", ["x", "w"], ["y"], "call", domain="mine")], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64, 512, 512])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)], ir_version=8, functions=[function])
    made, report = exported("onnxruntime", model, tmp_path)
    assert not report["whole_model_compared"] and report["nodes_compared"] == 1 and not onnx.load_model_from_string(made).functions
