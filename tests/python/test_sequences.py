"""Sequences and optionals of known length are gone after the import: models against ONNX Runtime and PyTorch."""
import io
import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, parser

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
X = np.random.default_rng(5).standard_normal((2, 6, 5)).astype(np.float32)
HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'

# Bodies of models from x, float[2, 6, 5] or with an open H, to y.
MODELS = {
    "split_scalar": "n = Constant<value: tensor = int64 {4}>() p = Constant<value: tensor = int64 {1}>() s = SplitToSequence<axis = 1>(x, n) y = SequenceAt(s, p)",
    "split_lengths": "n = Constant<value: tensor = int64[3] {1, 2, 3}>() p = Constant<value: tensor = int64 {-1}>() s = SplitToSequence<axis = 1>(x, n) y = SequenceAt(s, p)",
    "split_ones": "p = Constant<value: tensor = int64 {3}>() s = SplitToSequence<axis = -1>(x) y = SequenceAt(s, p)",
    "unbind": "p = Constant<value: tensor = int64 {0}>() s = SplitToSequence<axis = 1, keepdims = 0>(x) y = SequenceAt(s, p)",
    "stack": "s = SplitToSequence<axis = 2, keepdims = 0>(x) y = ConcatFromSequence<axis = 0, new_axis = 1>(s)",
    "stack_last": "s = SplitToSequence<axis = 0, keepdims = 0>(x) y = ConcatFromSequence<axis = -1, new_axis = 1>(s)",
    "construct": "a = Relu(x) b = Neg(x) s = SequenceConstruct(a, x, b) y = ConcatFromSequence<axis = 1>(s)",
    "insert_and_erase": """e = SequenceEmpty<dtype = 1>() a = Relu(x) b = Neg(x) z = Constant<value: tensor = int64 {0}>() m = Constant<value: tensor = int64 {-2}>()
        s1 = SequenceInsert(e, a) s2 = SequenceInsert(s1, b, z) s3 = SequenceInsert(s2, x) s4 = SequenceInsert(s3, a, m) s5 = SequenceErase(s4, z) s6 = SequenceErase(s5)
        y = ConcatFromSequence<axis = 0>(s6)""",
    "length": """n = Constant<value: tensor = int64 {4}>() s = SplitToSequence<axis = 1>(x, n) i = Identity(s) l = SequenceLength(i) f = Cast<to = 1>(l) y = Mul(x, f)""",
    "length_as_index": """s = SplitToSequence<axis = 1>(x) l = SequenceLength(s) one = Constant<value: tensor = int64 {2}>() p = Sub(l, one) y = SequenceAt(s, p)""",
    "optional": "o = Optional(x) h = OptionalHasElement(o) g = OptionalGetElement(o) z = Neg(g) y = Where(h, g, z)",
    "sequence_in_optional": """s = SequenceConstruct(x, x) o = Optional(s) g = OptionalGetElement(o) y = ConcatFromSequence<axis = 1>(g)""",
    "branch_on_optional": """o = Optional(x) h = OptionalHasElement(o)
        y = If(h) <then_branch = t () => (float[a, b, c] r) { g = OptionalGetElement(o) r = Relu(g) }, else_branch = e () => (float[d, f, g] q) { q = Neg(x) }>""",
    "list_built_in_a_loop": """e = SequenceEmpty<dtype = 1>() n = Constant<value: tensor = int64 {3}>() go = Constant<value: tensor = bool {1}>()
        s = Loop(n, go, e) <body = b (int64 i, bool c, seq(float[k, l, m]) before) => (bool cc, seq(float[o, p, q]) after) {
            cc = Identity(c) f = Cast<to = 1>(i) v = Add(x, f) after = SequenceInsert(before, v) }>
        y = ConcatFromSequence<axis = 2>(s)""",
    "parts_of_a_half": """two = Constant<value: tensor = int64[1] {2}>() sh = Shape<start = 1, end = 2>(x) half = Div(sh, two) rest = Sub(sh, half) n = Concat<axis = 0>(half, rest)
        s = SplitToSequence<axis = 1>(x, n) p = Constant<value: tensor = int64 {1}>() y = SequenceAt(s, p)""",
}
OPEN = {"split_lengths", "construct", "insert_and_erase", "split_ones", "stack", "parts_of_a_half", "list_built_in_a_loop", "optional"}


def written(body: str, open_sizes: bool) -> onnx.ModelProto:
    axes = "2, H, 5" if open_sizes else "2, 6, 5"
    return parser.parse_model(f"{HEAD}g (float[{axes}] x) => (float y) {{ {body} }}")


def expected(model: onnx.ModelProto, **inputs) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, inputs)


@pytest.mark.parametrize(("name", "open_sizes"), [(name, False) for name in MODELS] + [(name, True) for name in sorted(OPEN)])
def test_as_onnx_runtime(name, open_sizes, polyphase, tmp_path):
    model = written(MODELS[name], open_sizes)
    onnx.save(model, tmp_path / "m.onnx")
    found = polyphase.run_arrays(tmp_path / "m.onnx", {"x": X}, tmp_path)
    np.testing.assert_array_equal(found["y"], expected(model, x=X)[0])


REFUSED = {
    "n = Constant<value: tensor = int64 {4}>() p = Constant<value: tensor = int64 {0}>() s = SplitToSequence<axis = 1>(x, n) y = SequenceAt(s, p)":
        "node 's': how many parts there are depends on axis 1, H, which is known only when the model runs.",
    "f = ReduceMax<keepdims = 0>(x) p = Cast<to = 7>(f) s = SplitToSequence<axis = 2>(x) y = SequenceAt(s, p)":
        "node 'y': the position ('p', i64[]) is computed from the model's inputs; it must be fixed in the model.",
    "p = Constant<value: tensor = int64 {5}>() s = SplitToSequence<axis = 2>(x) y = SequenceAt(s, p)": "node 'y': the position is 5; it must lie in [-5, 5).",
    "s = SplitToSequence<axis = 2>(x) y = Relu(s)": "node 'y': the value 's' is a sequence; here it must be a tensor.",
    "y = SplitToSequence<axis = 2>(x)": "the value 'y' is a sequence; here it must be a tensor.",
    "e = SequenceEmpty() y = ConcatFromSequence<axis = 0>(e)": "node 'y': the sequence is empty.",
    """e = SequenceEmpty<dtype = 1>() n = Constant<value: tensor = int64 {99}>() go = Constant<value: tensor = bool {1}>()
       s = Loop(n, go, e) <body = b (int64 i, bool c, seq(float[k, l, m]) before) => (bool cc, seq(float[o, p, q]) after) {
            cc = Identity(c) after = SequenceInsert(before, x) }>
       y = ConcatFromSequence<axis = 2>(s)""": "node 's': a sequence is carried from trip to trip, and the loop is not unrolled.",
}


@pytest.mark.parametrize("body", list(REFUSED))
def test_what_cannot_be_known_is_refused(body, polyphase, tmp_path):
    onnx.save(written(body, True), tmp_path / "m.onnx")
    done = polyphase("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.ppe", expect=1)
    assert REFUSED[body] in done.stderr


def test_an_optional_that_holds_nothing(polyphase, tmp_path):
    nothing = helper.make_node("Optional", [], ["o"], type=helper.make_tensor_type_proto(FLOAT, [1]))
    nodes = [nothing, helper.make_node("OptionalHasElement", ["o"], ["h"]), helper.make_node("Neg", ["x"], ["z"]), helper.make_node("Where", ["h", "x", "z"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", FLOAT, [2, 6, 5])], [helper.make_tensor_value_info("y", FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), tmp_path / "m.onnx")
    np.testing.assert_array_equal(polyphase.run_arrays(tmp_path / "m.onnx", {"x": X}, tmp_path)["y"], -X)
    graph.node[1].CopyFrom(helper.make_node("OptionalGetElement", ["o"], ["h"], name="get"))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), tmp_path / "m.onnx")
    words = polyphase("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.ppe", expect=1).stderr
    assert "node 'get': the optional holds nothing, but its element is taken." in words


class Chunks(torch.nn.Module):
    """Every way in which a network takes a tensor apart and puts it together."""

    def forward(self, x):
        a, b = torch.chunk(x, 2, dim=1)
        parts = torch.split(x, [1, 2, 3], dim=1)
        rows = torch.unbind(x, dim=0)
        return torch.cat([parts[2], a], 1), torch.stack([b.relu(), a], 0), rows[1] + rows[0], torch.tensor_split(x, 3, dim=1)[1]


class Listed(torch.nn.Module):
    """A list built up in a scripted loop, as torch.jit.script keeps it."""

    def forward(self, x):
        kept: list[torch.Tensor] = []
        for part in torch.split(x, 2, dim=1):
            kept.append(part.relu())
        kept.append(x)
        return torch.cat(kept, 1), kept[1] + kept[0]


@pytest.mark.parametrize("opset", [13, 17])
@pytest.mark.parametrize("network", [Chunks(), torch.jit.script(Listed()), torch.jit.script(Chunks())], ids=["traced", "scripted_list", "scripted"])
@pytest.mark.parametrize("dynamic", [None, {"x": {0: "N", 2: "W"}}], ids=["static", "open"])
def test_as_pytorch_exports_it(network, opset, dynamic, polyphase, tmp_path):
    x = torch.from_numpy(X)
    scripted = isinstance(network, torch.jit.ScriptModule)
    if dynamic and (scripted or isinstance(network, Chunks)):
        dynamic = {"x": {2: "W"}}  # unbind needs the number of rows
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, (x,), file, opset_version=opset, input_names=["x"], dynamic_axes=dynamic, dynamo=False)
    (tmp_path / "m.onnx").write_bytes(file.getvalue())
    found = polyphase.run_arrays(tmp_path / "m.onnx", {"x": X}, tmp_path)
    for got, want in zip(found.values(), network(x), strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-6)


@pytest.mark.parametrize("dynamic", [False, True])
def test_as_the_dynamo_exporter_writes_it(dynamic, polyphase, tmp_path):
    x = torch.from_numpy(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(Chunks(), (x,), dynamo=True, verbose=False, dynamic_shapes=({2: torch.export.Dim("W", min=2, max=64)},) if dynamic else None)
    program.save(tmp_path / "m.onnx")
    name = onnx.load(tmp_path / "m.onnx").graph.input[0].name
    found = polyphase.run_arrays(tmp_path / "m.onnx", {name: X}, tmp_path)
    for got, want in zip(found.values(), Chunks()(x), strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-6)
