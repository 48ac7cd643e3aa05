"""The export around the rules: what stays, names, subgraphs, files, refusals, the command line."""
from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
import torch
from engines import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from rule_cases import CASES, output_padding_from_stride_on
from trials import exported

import polyphase as package


def chain() -> onnx.ModelProto:
    """relu → the node that ONNX Runtime refuses → relu, with names that the rewrite would like to have."""
    case = output_padding_from_stride_on()
    model = case.model
    up = model.graph.node[0]
    up.input[0], up.output[0] = "in", "up/with_zeros"
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["in"], "first"), up, helper.make_node("Relu", ["up/with_zeros"], ["y"], "last")],
                              "chain", model.graph.input, model.graph.output, [*model.graph.initializer, numpy_helper.from_array(np.zeros(3, np.float32), "unused")])
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=8, producer_name="somebody", doc_string="said")


def test_a_model_that_the_target_takes_stays_byte_for_byte(tmp_path):
    for family in ("onnx", "onnxruntime"):
        case = CASES["onnx", "output-shape-of-all-axes"]()
        del case.model.graph.node[0].attribute[:]
        case.model.graph.node[0].attribute.append(helper.make_attribute("strides", [2]))
        made, report = exported(family, case.model, tmp_path)
        assert report["changes"] == [] and made == (tmp_path / "before.onnx").read_bytes()


def test_everything_but_the_node_stays(tmp_path):
    before = chain()
    made, report = exported("onnxruntime", before, tmp_path)
    after = onnx.load_model_from_string(made)
    assert [change["node"] for change in report["changes"]] == ["up"]
    kept = [node.SerializeToString() for node in after.graph.node if node.name in ("first", "last")]
    assert kept == [before.graph.node[0].SerializeToString(), before.graph.node[2].SerializeToString()]
    assert [t.SerializeToString() for t in after.graph.initializer][:len(before.graph.initializer)] == [t.SerializeToString() for t in before.graph.initializer]
    assert (after.producer_name, after.doc_string, after.ir_version, after.graph.name) == ("somebody", "said", 8, "chain")
    assert list(after.opset_import) == list(before.opset_import)
    names = [node.name for node in after.graph.node]
    assert names == ["first", "up/with_zeros_2", "up", "last"]  # the name that follows from the node's was taken
    case = output_padding_from_stride_on()
    assert np.array_equal(onnxruntime(made, case.inputs), np.maximum(np.asarray(torch.relu(torch.from_numpy(reference(case)))), 0))


def reference(case) -> np.ndarray:
    """The case on relu(x)."""
    weights = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in case.model.graph.initializer}
    x = torch.relu(torch.from_numpy(case.inputs["x"]))
    return torch.nn.functional.conv_transpose1d(x, weights["w"], weights.get("b"), stride=1, dilation=3, output_padding=2).numpy()


def test_a_node_in_a_branch_is_rewritten(tmp_path):
    case = output_padding_from_stride_on()
    flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 3)
    up = case.model.graph.node[0]
    up.output[0] = "y_then"
    same = helper.make_node("ConvTranspose", list(up.input), ["y_else"], "plain", dilations=[3], pads=[0, 0], strides=[1])
    longer = helper.make_node("Pad", ["y_else", "pads"], ["y_long"], "pad")
    branches = [helper.make_graph([up], "then", [], [helper.make_tensor_value_info("y_then", TensorProto.FLOAT, [None] * 3)]),
                helper.make_graph([same, longer], "else", [], [helper.make_tensor_value_info("y_long", TensorProto.FLOAT, [None] * 3)])]
    node = helper.make_node("If", ["flag"], ["y"], "choose", then_branch=branches[0], else_branch=branches[1])
    weights = [*case.model.graph.initializer, numpy_helper.from_array(np.array([0, 0, 0, 0, 0, 2], np.int64), "pads")]
    model = helper.make_model(helper.make_graph([node], "g", [*case.model.graph.input, flag], [y], weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    made, report = exported("onnxruntime", model, tmp_path)
    assert [change["node"] for change in report["changes"]] == ["up"] and report["rewritten_nodes"] == 1
    assert np.array_equal(onnxruntime(made, {**case.inputs, "flag": np.array(True)}), case.right)


def test_our_importer_folds_computed_pads_back(tmp_path):
    """Pads that follow from the input's size are one transposed convolution again, with a crop that is an expression."""
    nodes = [helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Slice", ["shape", "two", "three"], ["size"]),
             helper.make_node("Mod", ["size", "two"], ["odd"]), helper.make_node("Concat", ["one", "odd"], ["pads"], axis=0),
             helper.make_node("ConvTransposeWithDynamicPads", ["x", "w", "pads"], ["y"], "up", domain="com.microsoft", strides=[2])]
    constants = [numpy_helper.from_array(np.array([value], np.int64), name) for name, value in (("one", 1), ("two", 2), ("three", 3))]
    constants.append(numpy_helper.from_array(np.ones((1, 1, 3), np.float32), "w"))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, "L"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
    made, report = exported("onnx", model, tmp_path)
    assert report["whole_model_compared"] and report["runs"] == 3
    operators = [node.op_type for node in onnx.load_model_from_string(made).graph.node]
    assert operators.count("ConvTranspose") == 1 and operators[-1] == "Slice"
    engine = package.compile(tmp_path / "after.onnx")
    steps = [step["operation"] for step in package.explain(engine, {"x": (1, 1, 5)}).data["steps"]] if hasattr(package.Explanation, "data") else None
    assert steps is None or not any("slice" in step for step in steps)
    for length in (4, 5):
        x = np.ones((1, 1, length), np.float32)
        assert engine(x).shape == (1, 1, 2 * length + 1 - 1 - length % 2)


def with_files(folder) -> str:
    case = output_padding_from_stride_on()
    onnx.save(case.model, folder / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    return folder / "model.onnx"


def test_files_of_weights_stay_or_are_copied(tmp_path):
    case = output_padding_from_stride_on()
    model = with_files(tmp_path)
    package.export(model, tmp_path / "beside.onnx", target="onnxruntime")
    (tmp_path / "other").mkdir()
    report = package.export(model, tmp_path / "other" / "out.onnx", target="onnxruntime")
    assert report["external_files"] == ["weights.bin"]
    assert (tmp_path / "other" / "weights.bin").read_bytes() == (tmp_path / "weights.bin").read_bytes()
    package.export(model, tmp_path / "other" / "out.onnx", target="onnxruntime")  # the same bytes may lie there
    for made in (tmp_path / "beside.onnx", tmp_path / "other" / "out.onnx"):
        assert np.array_equal(onnxruntime(str(made), case.inputs), case.right)
    (tmp_path / "other" / "weights.bin").write_bytes(b"mine")
    before = (tmp_path / "other" / "out.onnx").read_bytes()
    with pytest.raises(package.ArgumentError, match="other bytes lie where that would have to be copied"):
        package.export(model, tmp_path / "other" / "out.onnx", target="onnxruntime")
    assert (tmp_path / "other" / "out.onnx").read_bytes() == before


def test_what_is_no_onnx_model_is_refused(polyphase, tmp_path):
    torch.export.save(torch.export.export(torch.nn.ConvTranspose1d(2, 2, 3), (torch.zeros(1, 2, 4),)), tmp_path / "net.pt2")
    done = polyphase("export", tmp_path / "net.pt2", "--for", "onnxruntime", "-o", tmp_path / "out.onnx", expect=1)
    assert "only ONNX models can be exported" in done.stderr and "torch.onnx.export" in done.stderr
    model = with_files(tmp_path)
    polyphase("compile", model, "-o", tmp_path / "net.ppe")
    assert "is an engine" in polyphase("export", tmp_path / "net.ppe", "--for", "onnx", "-o", tmp_path / "out.onnx", expect=1).stderr
    assert "there is no target 'tflite'" in polyphase("export", model, "--for", "tflite", "-o", tmp_path / "out.onnx", expect=1).stderr
    said = polyphase("export", model, "--for", "onnx", "-o", tmp_path / "out.onnx", "--without-rule", "no-such", expect=1).stderr
    assert "has no rule 'no-such'. Its rules are computed-pads" in said
    assert not (tmp_path / "out.onnx").exists()


def test_the_reports_of_the_command(polyphase, tmp_path):
    model = with_files(tmp_path)
    text = polyphase("export", model, "--for", "onnxruntime", "-o", tmp_path / "out.onnx", "--report").stdout
    assert "output-padding-from-stride-on" in text and "why:    output_padding 2 is not below the stride 1" in text
    assert "1 of 1 nodes rewritten; the whole model gives the same bits" in text
    data = json.loads(polyphase("export", model, "--for", "onnxruntime", "-o", tmp_path / "out.onnx", "--json").stdout)
    change = data["changes"][0]
    assert data["command"] == "export" and (change["node"], change["rule"]) == ("up", "output-padding-from-stride-on")
    assert "output_padding: [2]" in change["before"] and change["after"].startswith("Pad, ConvTranspose{")


def test_a_large_model_is_compared_node_by_node(tmp_path):
    """10^10 multiply-adds: the node alone, on a small input."""
    weight = numpy_helper.from_array(np.ones((64, 64, 3, 3), np.float32), "w")
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], "up", dilations=[3, 3], output_padding=[2, 2])
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64, 512, 512])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    _, report = exported("onnxruntime", model, tmp_path)
    assert not report["whole_model_compared"] and report["nodes_compared"] == 1 and report["seconds"] < 20


@pytest.mark.parametrize("target", ["onnx", "openvino", "tensorrt", "tvm"])
@pytest.mark.parametrize("sizes, operands", [([4], ["x", "w", "p"]), ([1, 2, 4], ["x"]), ([1, 2, 4], [])])
def test_a_node_that_breaks_its_own_rules_is_refused(target, sizes, operands, tmp_path):
    node = helper.make_node("ConvTransposeWithDynamicPads", operands, ["y"], "up", domain="com.microsoft")
    weights = [numpy_helper.from_array(np.ones((2, 2, 3), np.float32), "w"), numpy_helper.from_array(np.array([0, 0], np.int64), "p")]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
    with pytest.raises(package.Error):
        exported(target, model, tmp_path)
    assert not (tmp_path / "after.onnx").exists()
