"""Operands that exporters compute although they are known: scales that are sizes over sizes, axes from ranks; and Resize's policies."""
import io
import json
import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import parser

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'


def onnx_runtime(model: onnx.ModelProto, **inputs) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, inputs)[0]


def check(polyphase, folder, text: str, **inputs) -> None:
    model = parser.parse_model(HEAD + text)
    onnx.save(model, folder / "m.onnx")
    found = polyphase.run_arrays(folder / "m.onnx", inputs, folder)["y"]
    right = onnx_runtime(model, **inputs)
    assert found.shape == right.shape
    np.testing.assert_allclose(found, right, rtol=1e-5, atol=2e-6)


def array(*shape) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller", "stretch"])
@pytest.mark.parametrize(("mode", "more"), [(mode, f', coordinate_transformation_mode = "{places}"') for mode in ("nearest", "linear", "cubic")
                                           for places in ("half_pixel", "asymmetric", "align_corners")] + [("linear", ", antialias = 1"), ("cubic", ", antialias = 1")])
def test_policies_of_resize(policy, mode, more, polyphase, tmp_path):
    for wanted in ("8, 9", "3, 11", "4, 3"):
        check(polyphase, tmp_path, f"""g (float[1, 2, 5, 7] x) => (float y) {{ s = Constant<value: tensor = int64[2] {{{wanted}}}>()
              y = Resize<mode = "{mode}", axes = [2, 3], keep_aspect_ratio_policy = "{policy}"{more}>(x, , , s) }}""", x=array(1, 2, 5, 7))


SKIP = "float[N, 3, H, W] x, float[N, 3, P, Q] skip"
TO_SKIP = {
    "whole": "a = Shape(skip) b = Shape(x) c = Cast<to = 1>(a) d = Cast<to = 1>(b) s = Div(c, d) y = Resize<mode = \"linear\">(x, , s)",
    "spatial": """a = Shape<start = 2>(skip) b = Shape<start = 2>(x) c = Cast<to = 1>(a) d = Cast<to = 1>(b) r = Div(c, d)
                  one = Constant<value: tensor = float[2] {1.0, 1.0}>() s = Concat<axis = 0>(one, r) y = Resize<mode = "linear">(x, , s)""",
    "one_by_one": """two = Constant<value: tensor = int64 {2}>() three = Constant<value: tensor = int64 {3}>() z = Constant<value: tensor = int64[1] {0}>()
                  a = Shape(skip) b = Shape(x) a2 = Gather<axis = 0>(a, two) a3 = Gather<axis = 0>(a, three) b2 = Gather<axis = 0>(b, two) b3 = Gather<axis = 0>(b, three)
                  f2 = Cast<to = 1>(a2) f3 = Cast<to = 1>(a3) g2 = Cast<to = 1>(b2) g3 = Cast<to = 1>(b3) h = Div(f2, g2) w = Div(f3, g3)
                  hh = Unsqueeze(h, z) ww = Unsqueeze(w, z) s = Concat<axis = 0>(hh, ww) y = Resize<mode = "nearest", axes = [2, 3]>(x, , s)""",
    "twice_the_skip": """a = Shape<start = 2>(skip) b = Shape<start = 2>(x) c = Cast<to = 1>(a) d = Cast<to = 1>(b) r = Div(c, d) two = Constant<value: tensor = float {2.0}>()
                  s = Mul(r, two) y = Resize<mode = "linear", axes = [2, 3]>(x, , s)""",
}


@pytest.mark.parametrize("name", TO_SKIP)
def test_scales_that_are_sizes_over_sizes(name, polyphase, tmp_path):
    for sizes in ((4, 6, 8, 12), (3, 4, 6, 6), (8, 8, 4, 6)):
        check(polyphase, tmp_path, f"g ({SKIP}) => (float y) {{ {TO_SKIP[name]} }}", x=array(1, 3, *sizes[:2]), skip=array(1, 3, *sizes[2:]))


@pytest.mark.parametrize("body", [
    "z = Constant<value: tensor = int64[3] {0, 2, 3}>() m = ReduceMax<keepdims = 0>(skip, z) y = Resize(x, , m)",
    "a = Shape(skip) b = Shape(x) q = Div(a, b) s = Cast<to = 1>(q) y = Resize(x, , s)",
    "a = Shape(skip) n = Constant<value: tensor = float[4] {1.0, 1.0, 7.0, 7.0}>() c = Cast<to = 1>(a) s = Div(c, n) y = Resize(x, , s)",
], ids=["data", "whole_quotients", "not_whole"])
def test_scales_that_are_not_are_refused(body, polyphase, tmp_path):
    onnx.save(parser.parse_model(f"{HEAD}g ({SKIP}) => (float y) {{ {body} }}"), tmp_path / "m.onnx")
    words = polyphase("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.ppe", expect=1).stderr
    assert "node 'y': scales is computed from the model's inputs." in words


class ToSkip(torch.nn.Module):
    def forward(self, x, skip):
        return torch.nn.functional.interpolate(x, size=skip.shape[2:], mode="nearest") + skip


@pytest.mark.parametrize("opset", [9, 10, 11, 17])
def test_interpolate_to_a_skip_connection(opset, polyphase, tmp_path):
    x, skip = torch.from_numpy(array(1, 3, 4, 5)), torch.from_numpy(array(1, 3, 8, 10))
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(ToSkip(), (x, skip), file, opset_version=opset, input_names=["x", "skip"], output_names=["y"], dynamo=False,
                          dynamic_axes={"x": {2: "H", 3: "W"}, "skip": {2: "P", 3: "Q"}})
    (tmp_path / "m.onnx").write_bytes(file.getvalue())
    for sizes in ((4, 5, 8, 10), (3, 5, 9, 15), (7, 7, 21, 14)):
        x, skip = array(1, 3, *sizes[:2]), array(1, 3, *sizes[2:])
        found = polyphase.run_arrays(tmp_path / "m.onnx", {"x": x, "skip": skip}, tmp_path)["y"]
        np.testing.assert_allclose(found, ToSkip()(torch.from_numpy(x), torch.from_numpy(skip)).numpy(), rtol=1e-6)


ONE = "one = Constant<value: tensor = int64[1] {1}>()"
AXES = {
    "last_by_size": f"s = Shape(x) r = Size(s) {ONE} a = Sub(r, one) y = ReduceMean(x, a)",
    "range": "s = Shape(x) r = Size(s) i = Constant<value: tensor = int64 {1}>() k = Constant<value: tensor = int64 {2}>() a = Range(k, r, i) y = ReduceMean<keepdims = 0>(x, a)",
    "shape_of_shape": f"s = Shape(x) r = Shape(s) {ONE} a = Sub(r, one) y = ReduceMax(x, a)",
    "nonzero": """s = Shape(x) r = Shape(s) c = ConstantOfShape<value: tensor = int64[1] {1}>(r) n = NonZero(c) z = Constant<value: tensor = int64[1] {0}>() q = Squeeze(n, z)
                  k = Constant<value: tensor = int64[1] {2}>() e = Constant<value: tensor = int64[1] {4}>() a = Slice(q, k, e) y = ReduceSum(x, a)""",
    "where": f"s = Shape(x) r = Shape(s) {ONE} f = Constant<value: tensor = int64[1] {{4}}>() e = Equal(r, f) m = Neg(one) a = Where(e, m, one) y = ReduceSum(x, a)",
    "beside_open_sizes": f"s = Shape(x) k = Shape(s) b = Concat<axis = 0>(s, k) f = Constant<value: tensor = int64[1] {{4}}>() g = Gather<axis = 0>(b, f) {ONE} a = Sub(g, one) y = ReduceSum(x, a)",
    "unsqueeze": "s = Shape(x) r = Size(s) m = Constant<value: tensor = int64[1] {-1}>() b = Add(r, m) a = Mod(b, r) y = Unsqueeze(x, a)",
    "squeeze": f"z = Constant<value: tensor = int64[1] {{0}}>() u = Unsqueeze(x, z) s = Shape(u) r = Size(s) f = Constant<value: tensor = int64[1] {{5}}>() a = Sub(r, f) y = Squeeze(u, a)",
    "float": "s = Shape(x) r = Shape(s) f = Cast<to = 1>(r) h = Constant<value: tensor = float[1] {0.5}>() g = Mul(f, h) a = Cast<to = 7>(g) y = ReduceSum(x, a)",
    "slice": f"s = Shape(x) r = Shape(s) {ONE} a = Sub(r, one) y = Slice(x, one, a, a)",
    "steps": "s = Shape(x) r = Shape(s) k = Constant<value: tensor = int64[1] {2}>() z = Constant<value: tensor = int64[1] {0}>() a = Div(r, k) y = Slice(x, z, r, a, a)",
    "top_k": "w = Constant<value: tensor = float[3] {1.0, 5.0, 2.0}>() k = Constant<value: tensor = int64[1] {1}>() v, a = TopK(w, k) y = ReduceSum(x, a)",
    "cumulated": "s = Shape(x) r = Size(s) i = Constant<value: tensor = int64 {1}>() a = Sub(r, i) y = CumSum(x, a)",
}


@pytest.mark.parametrize("name", AXES)
def test_axes_that_are_computed_from_ranks(name, polyphase, tmp_path):
    check(polyphase, tmp_path, f"g (float[N, 3, H, W] x) => (float y) {{ {AXES[name]} }}", x=array(2, 3, 4, 5))


# What exporters write of math.ceil and of a division by a float: sizes that go through floats and come back.
THROUGH_FLOATS = {
    # EnCodec's padding: as much as the last frame lacks.
    "frames": """two = Constant<value: tensor = int64 {2}>() three = Constant<value: tensor = int64 {3}>() one = Constant<value: tensor = int64 {1}>()
              fone = Constant<value: tensor = float {1.0}>() fthree = Constant<value: tensor = float {3.0}>() zero = Constant<value: tensor = int64[1] {0}>()
              all = Shape(x) n = Gather<axis = 0>(all, two) a = Sub(n, two) f = Cast<to = 1>(a) d = Div(f, fthree) e = Add(d, fone) c = Ceil(e) i = Cast<to = 7>(c)
              j = Sub(i, one) k = Mul(j, three) l = Add(k, two) m = Sub(l, n) u = Unsqueeze(m, zero) z5 = Constant<value: tensor = int64[5] {0, 0, 1, 0, 0}>()
              pads = Concat<axis = 0>(z5, u) y = Pad(x, pads)""",
    "half": """i2 = Constant<value: tensor = int64[1] {2}>() h = Constant<value: tensor = float {0.5}>() all = Shape(x) n = Gather<axis = 0>(all, i2)
              f = Cast<to = 1>(n) g = Mul(f, h) d = Floor(g) k = Cast<to = 7>(d) z = Constant<value: tensor = int64[1] {0}>() y = Slice(x, z, k, i2)""",
    "less_than_a_frame": """i2 = Constant<value: tensor = int64[1] {2}>() h = Constant<value: tensor = float {-1.5}>() q = Constant<value: tensor = float {0.25}>()
              all = Shape(x) n = Gather<axis = 0>(all, i2) f = Cast<to = 1>(n) g = Add(f, h) d = Ceil(g) e = Sub(d, q) r = Floor(e)
              k = Cast<to = 7>(r) z = Constant<value: tensor = int64[1] {0}>() y = Slice(x, z, k, i2)""",
}


@pytest.mark.parametrize("name", THROUGH_FLOATS)
def test_sizes_that_go_through_floats(name, polyphase, tmp_path):
    for length in (9, 10, 11, 12, 25):
        check(polyphase, tmp_path, f"g (float[1, 2, L] x) => (float y) {{ {THROUGH_FLOATS[name]} }}", x=array(1, 2, length))
    table = json.loads(polyphase("check", tmp_path / "m.onnx", "--json").stdout)
    assert [size["name"] for size in table["sizes"] if size["born_at"]] == []
