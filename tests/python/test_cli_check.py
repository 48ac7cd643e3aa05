"""polyphase check: what is there, what is missing and why, open sizes, what will be slow; exit codes; JSON."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import small_models

UNSUPPORTED = 4


def check(polyphase, model, *more, expect=0):
    out = json.loads(polyphase("check", model, "--json", *more, expect=expect).stdout)
    assert out["schema"] == 1 and out["command"] == "check" and out["ok"] == (expect == 0)
    return out


def operators(out):
    return {(f"{use['domain']}." if use["domain"] else "") + use["operator"]: use for use in out["operators"]}


def test_a_model_that_is_ready(polyphase, tmp_path):
    model = small_models.up(tmp_path / "up.onnx")
    out = check(polyphase, model)
    assert {name: (use["state"], use["nodes"], use["version"]) for name, use in operators(out).items()} == {
        "ConvTranspose": ("there", 1, 11), "Relu": ("there", 1, 14)}
    assert out["slow"] == [] and out["errors"] == [] and out["steps"] >= 1
    assert out["outputs"] == [{"name": "y", "dtype": "f32", "sizes": ["N", "2", "2*H", "2*W"]}]
    assert [(size["name"], size["inputs"], size["born_at"]) for size in out["sizes"]] == [
        ("H", ["x[2]"], ""), ("N", ["x[0]"], ""), ("W", ["x[3]"], "")]
    text = polyphase("check", model)
    assert "ready: it would compile and run" in text.stdout and "ConvTranspose" in text.stdout and text.stderr == ""


def test_sizes_may_be_given_as_for_compile(polyphase, tmp_path):
    model = small_models.up(tmp_path / "up.onnx")
    out = check(polyphase, model, "--shape", "x=1x3xHx8", "--dim", "H=16..64")
    assert [(size["name"], size["low"], size["high"]) for size in out["sizes"]] == [("H", 16, 64)]
    assert check(polyphase, model, "--shape", "x=1x3x8x8")["sizes"] == []
    assert "there is no target 'gpu'" in polyphase("check", model, "--target", "gpu", expect=1).stderr


def test_sizes_born_from_data(polyphase, tmp_path):
    out = check(polyphase, small_models.sizes_from_data(tmp_path / "m.onnx"))
    born = [size for size in out["sizes"] if size["born_at"]]
    assert len(born) == 2 and all(size["born_at"].startswith("widening") for size in born) and max(size["values"] for size in born) == 2


def broken(path):
    """Two unknown operators, an attribute that is refused in one node of two, a function, nodes in a branch."""
    inside = helper.make_graph([helper.make_node("Fuse", ["x"], ["i"], name="within", domain="acme"),
                                helper.make_node("Relu", ["i"], ["j"], name="behind")], "then", [],
                               [helper.make_tensor_value_info("j", TensorProto.FLOAT, None)])
    other = helper.make_graph([helper.make_node("Relu", ["x"], ["k"], name="else")], "else", [],
                              [helper.make_tensor_value_info("k", TensorProto.FLOAT, None)])
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="first"),
        helper.make_node("Nowhere", ["a"], ["b"], name="unknown"),
        helper.make_node("Relu", ["b"], ["c"], name="after"),
        helper.make_node("Twice", ["c"], ["d"], name="call", domain="mine"),
        helper.make_node("Relu", ["a"], ["e"], name="odd", strange=1),
        helper.make_node("If", ["c0"], ["f"], name="if", then_branch=inside, else_branch=other),
    ]
    function = helper.make_function("mine", "Twice", ["p"], ["q"], [helper.make_node("Add", ["p", "p"], ["q"], name="sum")],
                                    [helper.make_opsetid("", 17)])
    graph = helper.make_graph(nodes, "broken", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]),
                                                helper.make_tensor_value_info("c0", TensorProto.BOOL, [])],
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "def"])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1), helper.make_opsetid("acme", 3)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=[function]), path)
    return path


def test_everything_that_is_missing_is_told_at_once(polyphase, tmp_path):
    model = broken(tmp_path / "m.onnx")
    out = check(polyphase, model, expect=UNSUPPORTED)
    uses = operators(out)
    assert {name: (use["state"], use["nodes"], use["nodes_refused"]) for name, use in uses.items()} == {
        "Relu": ("refused", 5, 1), "Nowhere": ("missing", 1, 1), "acme.Fuse": ("missing", 1, 1),
        "mine.Twice": ("function", 1, 0), "Add": ("there", 1, 0), "If": ("there", 1, 0)}
    assert uses["acme.Fuse"]["opset"] == 3 and "model-local function" in uses["acme.Fuse"]["advice"]
    assert uses["acme.Fuse"]["first_node"] == "within"
    [problem] = uses["Relu"]["problems"]
    assert problem["node"] == "odd" and "strange" in problem["message"] and problem["nodes"] == 1
    text = polyphase("check", model, expect=UNSUPPORTED).stdout
    assert "MISSING" in text and "1 of 5  REFUSED" in text
    assert "NOT READY: 3 operator types with 3 nodes cannot be taken" in text
    # compile ends where check had said so.
    polyphase("compile", model, "-o", tmp_path / "m.ppe", expect=1)


def test_what_is_there_is_looked_at_beside_what_is_missing(polyphase, tmp_path):
    nodes = [helper.make_node("Nowhere", ["x"], ["lost"], name="unknown"),
             helper.make_node("Exp", ["x"], ["kept"], name="kept")]
    model = small_models.save(tmp_path / "m.onnx", nodes, [("x", TensorProto.FLOAT, ["N", 4])],
                              [(name, TensorProto.FLOAT, None) for name in ("lost", "kept")])
    out = check(polyphase, model, expect=UNSUPPORTED)
    assert out["steps"] == 1 and [size["name"] for size in out["sizes"]] == ["N"]


def test_steps_on_plain_loops_are_listed_with_reasons(polyphase, tmp_path):
    # Crops that reach beyond the image.
    nodes = [helper.make_node("Resize", ["x", "roi", "", "sizes"], ["y"], name="crop", mode="linear",
                              coordinate_transformation_mode="tf_crop_and_resize")]
    constants = [("roi", np.array([0, 0, 0.1, 0.1, 1, 1, 1.2, 1.2], np.float32)), ("sizes", np.array([1, 2, 5, 5]))]
    model = small_models.save(tmp_path / "m.onnx", nodes, [("x", TensorProto.FLOAT, [1, 2, 8, 8])],
                              [("y", TensorProto.FLOAT, None)], constants)
    out = check(polyphase, model)
    polyphase("compile", model, "-o", tmp_path / "m.ppe")
    engine = json.loads(polyphase("inspect", tmp_path / "m.ppe", "--json").stdout)
    slow = [step for step in engine["steps"] if step["reference"]]
    assert sum(group["steps"] for group in out["slow"]) == len(slow) == 1
    assert out["slow"][0]["first_node"] == "crop" and out["slow"][0]["operation"] == "resize"
    assert out["slow"][0]["operands"] == "f32[1, 2, 8, 8]"
    assert any(reason.endswith(": does not extrapolate") for reason in out["slow"][0]["reasons"])
    assert "1 of 1 steps will run on plain loops" in polyphase("check", model).stdout


@pytest.mark.parametrize("kind, words", [(TensorProto.FLOAT16, "f16: it is stored so and computed in f32"),
                                         (TensorProto.BFLOAT16, "bf16: it is stored so and computed in f32"),
                                         (TensorProto.DOUBLE, "in f64, at half the speed of f32 or less")])
def test_notes_on_element_types(polyphase, tmp_path, kind, words):
    model = small_models.save(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"], name="r")],
                              [("x", kind, [4])], [("y", kind, None)])
    assert any(words in note for note in check(polyphase, model)["notes"])


def test_names_cannot_reach_the_terminal(polyphase, tmp_path):
    nodes = [helper.make_node("No\x1b[31m", ["x"], ["y"], name="n\x1b]0;\x07")]
    model = small_models.save(tmp_path / "m.onnx", nodes, [("x\x1b", TensorProto.FLOAT, ["N\n"])], [("y", TensorProto.FLOAT, None)])
    done = polyphase("check", model, expect=UNSUPPORTED)
    assert "\x1b" not in done.stdout + done.stderr and "\\x1b" in done.stdout
