"""polyphase compat: every operator configuration of a model is tested once, alone, and what is wrong or lacking decides the exit code."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

import small_models
from recurrent_networks import SCRIPTED

UNSUPPORTED = 4
ROW = {"operation", "attributes", "operands", "nodes", "first_node", "outcome", "reason", "cases"}
CASE = {"sizes", "operands", "kernel", "outcome", "reason", "error", "tolerance"}
AUTO = torch.export.Dim.AUTO


def compat(polyphase, model, *more, expect=0):
    out = model.parent / "compat.json"
    polyphase("compat", model, "--json", out, *more, expect=expect)
    report = json.loads(out.read_text())
    assert report["schema"] == 1 and report["command"] == "compat" and report["ok"] == (expect == 0)
    for row in report["rows"]:
        assert set(row) == ROW and all(set(case) == CASE for case in row["cases"])
    assert sum(report["counts"].values()) == len(report["rows"])
    return report


def outcomes(report):
    return {(row["operation"], row["outcome"]) for row in report["rows"]}


def test_open_sizes_are_bound_three_times(polyphase, tmp_path):
    report = compat(polyphase, small_models.up(tmp_path / "up.onnx"))
    assert outcomes(report) == {("conv_transpose", "right"), ("relu", "right")}
    deconvolution = report["rows"][0]
    assert deconvolution["operands"] == [{"dtype": "f32", "sizes": ["N", "3", "H", "W"], "constant": False},
                                         {"dtype": "f32", "sizes": ["3", "2", "2", "2"], "constant": True}, None]
    least, middle, odd = (case["sizes"] for case in deconvolution["cases"])
    assert least == {"N": 1, "H": 1, "W": 1} and middle["H"] % 2 == 0 and odd["H"] % 2 == 1 and odd["W"] % 2 == 1
    assert [case["operands"][0] for case in deconvolution["cases"]] == [[case["sizes"]["N"], 3, case["sizes"]["H"], case["sizes"]["W"]] for case in deconvolution["cases"]]
    assert all(case["kernel"] and 0 <= case["error"] <= case["tolerance"] == 1e-5 for case in deconvolution["cases"])


def test_sizes_that_are_given(polyphase, tmp_path):
    model = small_models.up(tmp_path / "up.onnx")
    report = compat(polyphase, model, "--sizes", "H=5,6", "--sizes", "W=9", "--only", "relu")
    assert [row["operation"] for row in report["rows"]] == ["relu"]
    assert [(case["sizes"]["H"], case["sizes"]["W"]) for case in report["rows"][0]["cases"]] == [(5, 9), (6, 9)]
    ranged = compat(polyphase, model, "--dim", "H=16..18", "--shape", "x=1x3xHx4")
    assert [case["sizes"] for case in ranged["rows"][0]["cases"]] == [{"H": 16}, {"H": 17}]
    for flags, words in ((("--sizes", "Q=4"), "no open size"), (("--sizes", "H=a"), "expected NAME=SIZE"), (("--sizes", "H="), "NAME=VALUE"),
                         (("--only", "softmax"), "the model has no operator 'softmax'"), (("--target", "gpu"), "no target 'gpu'"),
                         (("--sizes", "H=99999999999999999999"), "expected NAME=SIZE")):
        assert words in polyphase("compat", model, *flags, expect=1).stderr


def test_what_is_not_exact_is_past_a_tolerance_of_nothing(polyphase, tmp_path):
    model = small_models.up(tmp_path / "up.onnx")
    report = compat(polyphase, model, "--tolerance", "0", expect=1)
    assert outcomes(report) == {("conv_transpose", "wrong"), ("relu", "right")}
    assert report["rows"][0]["reason"].startswith("result 0: the numbers differ from the reference's, by up to ")
    shown = polyphase("compat", model, "--tolerance", "0", expect=1)
    assert "WRONG" in shown.stdout and "NOT all right" in shown.stdout and shown.stderr == ""


def test_seeds_give_other_numbers(polyphase, tmp_path):
    model = small_models.up(tmp_path / "up.onnx")
    errors = [[case["error"] for case in compat(polyphase, model, "--seed", seed)["rows"][0]["cases"]] for seed in (1, 1, 2)]
    assert errors[0] == errors[1] != errors[2]


def test_equal_nodes_are_one_row(polyphase, tmp_path):
    chain = ["a", "b", "c", "d", "e"]
    nodes = [helper.make_node("Relu" if n != "d" else "LeakyRelu", [before], [n], name=f"n{n}") for before, n in zip(["x", *chain], chain)]
    model = small_models.save(tmp_path / "chain.onnx", nodes, [("x", TensorProto.FLOAT, [2, 3])], [("e", TensorProto.FLOAT, None)])
    assert {(row["operation"], row["nodes"], row["first_node"]) for row in compat(polyphase, model)["rows"]} == {("relu", 4, "na"), ("leaky_relu", 1, "nd")}


def test_what_is_missing_or_refused_is_a_row(polyphase, tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="there"), helper.make_node("Fancy", ["a"], ["b"], name="gone", domain="com.acme"),
             helper.make_node("Relu", ["b"], ["y"], name="behind"), helper.make_node("GridSample", ["x", "x"], ["z"], name="odd", mode="nearly")]
    model = small_models.save(tmp_path / "m.onnx", nodes, [("x", TensorProto.FLOAT, [1, 2, 4, 2])], [("y", TensorProto.FLOAT, None), ("z", TensorProto.FLOAT, None)])
    proto = onnx.load(model)
    proto.opset_import.append(helper.make_opsetid("com.acme", 1))
    onnx.save(proto, model)
    report = compat(polyphase, model, expect=UNSUPPORTED)
    assert outcomes(report) == {("relu", "right"), ("com.acme.Fancy", "missing"), ("GridSample", "refused")}
    rows = {row["operation"]: row for row in report["rows"]}
    assert rows["com.acme.Fancy"]["reason"].startswith("Polyphase does not have the operator.") and rows["relu"]["nodes"] == 1
    assert "mode" in rows["GridSample"]["reason"] and rows["GridSample"]["first_node"] == "odd"


def branches(path):
    """Nodes in the branch that runs, in the one that does not, and behind."""
    def branch(op, name):
        node = helper.make_node(op, ["x"], [name], name=f"{name}_node")
        return helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3])])

    nodes = [helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0), helper.make_node("Less", ["s", "limit"], ["c"]),
             helper.make_node("If", ["c"], ["b"], name="choice", then_branch=branch("Exp", "taken"), else_branch=branch("Sin", "left")),
             helper.make_node("Neg", ["b"], ["y"], name="behind")]
    return small_models.save(path, nodes, [("x", TensorProto.FLOAT, [2, 3])], [("y", TensorProto.FLOAT, None)], [("limit", np.float32(100))])


def test_branches_are_a_row_and_are_looked_into(polyphase, tmp_path):
    report = compat(polyphase, branches(tmp_path / "if.onnx"))
    found = {row["operation"]: row for row in report["rows"]}
    assert {name: found[name]["outcome"] for name in ("if", "exp", "sin", "neg")} == {"if": "right", "exp": "right", "sin": "not run", "neg": "right"}
    assert "branch" in found["sin"]["reason"]


@pytest.mark.parametrize("name", SCRIPTED)
def test_loops_are_a_row_and_are_looked_into(name, polyphase, tmp_path):
    make, calls = SCRIPTED[name]
    torch.manual_seed(1)
    torch.onnx.export(torch.jit.script(make().eval()), calls[0], str(tmp_path / "model.onnx"), dynamo=False, input_names=["x", "n"][: len(calls[0])],
                      output_names=["out"], dynamic_axes={"x": {0: "N"}}, opset_version=17)
    report = compat(polyphase, tmp_path / "model.onnx")
    rows = {row["operation"]: row["outcome"] for row in report["rows"]}
    assert rows["loop"] == "right" and sum(outcome == "right" for outcome in rows.values()) >= 2, report["rows"]


class Up(nn.Module):
    """A transposed convolution, an activation, and a skip connection that its output is cut to."""

    def __init__(self, layer: nn.Module, norm: bool = False):
        super().__init__()
        self.layer = nn.utils.parametrizations.weight_norm(layer) if norm else layer

    def forward(self, x):
        return torch.tanh(self.layer(x)) * 2


NETWORKS = {
    "1d": (lambda: Up(nn.ConvTranspose1d(4, 6, 4, 2, 1)), (2, 4, 9)),
    "1d dilated": (lambda: Up(nn.ConvTranspose1d(4, 6, 3, 3, 1, 2, dilation=2)), (2, 4, 9)),
    "1d long": (lambda: Up(nn.ConvTranspose1d(6, 3, 32, 16, 8)), (2, 6, 7)),
    "2d": (lambda: Up(nn.ConvTranspose2d(4, 6, 4, 2, 1)), (2, 4, 6, 7)),
    "2d output padding": (lambda: Up(nn.ConvTranspose2d(4, 6, 3, 2, 1, 1)), (2, 4, 6, 7)),
    "2d uneven": (lambda: Up(nn.ConvTranspose2d(4, 6, (3, 5), (2, 3), (1, 0), (0, 2), bias=False)), (2, 4, 6, 7)),
    "2d groups": (lambda: Up(nn.ConvTranspose2d(4, 6, 3, 2, groups=2)), (2, 4, 6, 7)),
    "2d depthwise": (lambda: Up(nn.ConvTranspose2d(8, 8, 4, 2, 1, groups=8)), (2, 8, 6, 7)),
    "2d kernel below stride": (lambda: Up(nn.ConvTranspose2d(4, 6, 2, 3, 0, 1)), (2, 4, 6, 7)),
    "2d weight norm": (lambda: Up(nn.ConvTranspose2d(4, 6, 4, 2, 1), norm=True), (2, 4, 6, 7)),
    "2d stride 1": (lambda: Up(nn.ConvTranspose2d(4, 6, 3, 1, 1)), (2, 4, 6, 7)),
    "2d bf16": (lambda: Up(nn.ConvTranspose2d(4, 6, 4, 2, 1)).bfloat16(), (2, 4, 6, 7)),
    "3d": (lambda: Up(nn.ConvTranspose3d(3, 4, 3, 2, 1, 1)), (2, 3, 4, 5, 3)),
    "3d dilated": (lambda: Up(nn.ConvTranspose3d(3, 4, 2, (1, 2, 2), dilation=(2, 1, 3))), (2, 3, 4, 5, 3)),
}


@pytest.mark.parametrize("open_sizes", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_transposed_convolutions(name, open_sizes, polyphase, tmp_path):
    make, shape = NETWORKS[name]
    torch.manual_seed(2)
    module = make().eval()
    x = torch.randn(shape, dtype=next(module.parameters()).dtype)
    shapes = ({axis: AUTO for axis in range(len(shape)) if axis != 1},) if open_sizes else None
    torch.export.save(torch.export.export(module, (x,), dynamic_shapes=shapes), tmp_path / "net.pt2")
    report = compat(polyphase, tmp_path / "net.pt2")
    assert {outcome for _, outcome in outcomes(report)} == {"right"}
    deconvolution = next(row for row in report["rows"] if row["operation"] == "conv_transpose")
    assert len(deconvolution["cases"]) == (3 if open_sizes else 1)


def test_tables_are_whole_and_tame(polyphase, tmp_path):
    nasty = "<script>|`x`\n**\x1b[31m"
    model = small_models.save(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"], name=nasty)], [("x", TensorProto.FLOAT, [2, 3])], [("y", TensorProto.FLOAT, None)])
    polyphase("compat", model, "--table", tmp_path / "t.md")
    table = (tmp_path / "t.md").read_text()
    assert table.startswith("# Compatibility of ") and "\x1b" not in table and "<script>" not in table.replace("\\<", "")
    rows = [line for line in table.splitlines() if line.startswith("| relu")]
    assert len(rows) == 1 and rows[0].replace("\\|", "").count("|") == 10
    (tmp_path / "old.json").write_text("old")
    polyphase("compat", tmp_path / "none.onnx", "--json", tmp_path / "old.json", expect=1)
    assert (tmp_path / "old.json").read_text() == "old"
    assert "cannot write" in polyphase("compat", model, "--json", tmp_path / "no" / "x.json", expect=1).stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "old.json", "t.md"]


def test_hostile_files(polyphase, tmp_path):
    good = small_models.up(tmp_path / "up.onnx").read_bytes()
    rng = np.random.default_rng(3)
    for number in range(40):
        bad = bytearray(good[: rng.integers(1, len(good))] if number % 2 else good)
        for _ in range(3):
            bad[rng.integers(len(bad))] = rng.integers(256)
        path = tmp_path / "bad.onnx"
        path.write_bytes(bytes(bad))
        code = subprocess.run([str(polyphase.path), "compat", str(path)], capture_output=True, timeout=60, check=False).returncode
        assert code in (0, 1, UNSUPPORTED), number
    engine = tmp_path / "up.ppe"
    polyphase("compile", small_models.up(tmp_path / "up.onnx"), "-o", engine)
    assert "is an engine" in polyphase("compat", engine, expect=1).stderr
    (tmp_path / "text.onnx").write_text("hello")
    polyphase("compat", tmp_path / "text.onnx", expect=1)


def test_operations_beyond_the_limit_are_left_out(polyphase, tmp_path):
    report = compat(polyphase, small_models.up(tmp_path / "up.onnx"), "--sizes", "H=32", "--sizes", "W=32", "--most-operations", "10000")
    assert outcomes(report) == {("conv_transpose", "not run"), ("relu", "right")}
