"""Quantised convolutions and matrix products: exact sums whatever computes them, and by the kernels of FP32 where these hold them."""
import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import polyphase

TYPES = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}


def model(nodes, x, result, constants):
    """An ONNX model of one operand x and one result y."""
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    used = {name for node in nodes for name in node.input}
    return helper.make_model(
        helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TYPES[x.dtype.type], x.shape)],
                          [helper.make_tensor_value_info("y", result, None)], [t for t in tensors if t.name in used]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def compiled(proto, tmp_path, **options):
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    return polyphase.compile(path, **options)


def run(proto, x, tmp_path, **options):
    return compiled(proto, tmp_path, **options).session(threads=1).run({"x": x})["y"]


def any_of(rng, dtype, shape=()):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def drawn(seed):
    rng = np.random.default_rng(seed)
    return rng, rng.choice([np.uint8, np.int8]), rng.choice([np.uint8, np.int8])


@pytest.mark.parametrize("seed", range(12))
def test_integer_convolutions_are_exact(seed, tmp_path):
    rng, of_x, of_w = drawn(seed)
    channels, results, kernel, stride = (int(n) for n in rng.integers([1, 1, 1, 1], [60, 40, 4, 3]))
    groups = channels if seed % 4 == 3 else 1
    results = channels if groups > 1 else results
    x, w = any_of(rng, of_x, (2, channels, 11, 9)), any_of(rng, of_w, (results, channels // groups, kernel, kernel))
    zero_x, zero_w = any_of(rng, of_x), any_of(rng, of_w)
    node = helper.make_node("ConvInteger", ["x", "w", "zx", "zw"], ["y"], pads=[kernel // 2] * 4, strides=[stride] * 2, group=groups)
    found = run(model([node], x, TensorProto.INT32, {"w": w, "zx": zero_x, "zw": zero_w}), x, tmp_path)
    centred = [torch.from_numpy(a.astype(np.float64) - float(zero)) for a, zero in ((x, zero_x), (w, zero_w))]
    want = torch.nn.functional.conv2d(*centred, padding=kernel // 2, stride=stride, groups=groups)
    np.testing.assert_array_equal(found, want.numpy().astype(np.int64))


@pytest.mark.parametrize("rows, depth, columns", [(1, 3, 1), (17, 300, 33), (5, 1100, 40), (3, 5000, 16), (2, 40000, 8)])
def test_integer_products_are_exact_however_long(rows, depth, columns, tmp_path):
    rng, of_x, of_w = drawn(depth)
    x, w = any_of(rng, of_x, (rows, depth)), any_of(rng, of_w, (depth, columns))
    x[0], w[:, 0] = np.iinfo(of_x).max, np.iinfo(of_w).max  # the largest sums there are
    zero = any_of(rng, of_x)
    node = helper.make_node("MatMulInteger", ["x", "w", "zx"], ["y"])
    found = run(model([node], x, TensorProto.INT32, {"w": w, "zx": zero}), x, tmp_path)
    np.testing.assert_array_equal(found, (x.astype(np.int64) - int(zero)) @ w.astype(np.int64))


def chain(of_x):
    """Two QLinearConvs, the second of which reads what the first stored."""
    rng = np.random.default_rng(7)
    constants = {"xs": np.float32(0.02), "zx": any_of(rng, of_x), "w": any_of(rng, np.int8, (24, 16, 3, 3)), "ws": np.float32(0.01),
                 "zw": np.int8(0), "ys": np.float32(0.4), "zy": any_of(rng, of_x), "b": rng.integers(-40000, 40000, 24).astype(np.int32),
                 "v": any_of(rng, np.int8, (8, 24, 1, 1)), "zs": np.float32(3), "zz": any_of(rng, of_x)}
    nodes = [helper.make_node("QLinearConv", ["x", "xs", "zx", "w", "ws", "zw", "ys", "zy", "b"], ["m"], pads=[1] * 4),
             helper.make_node("QLinearConv", ["m", "ys", "zy", "v", "ws", "zw", "zs", "zz"], ["y"])]
    x = any_of(rng, of_x, (1, 16, 13, 10))
    return model(nodes, x, TYPES[of_x], constants), x


@pytest.mark.parametrize("of_x", TYPES)
def test_floats_give_the_bits_of_integers(of_x, tmp_path):
    proto, x = chain(of_x)
    integers = run(proto, x, tmp_path, without=["multiply_integers_in_floats"])
    np.testing.assert_array_equal(run(proto, x, tmp_path), integers)
    assert len(np.unique(integers)) > 50


def test_no_integer_kernel_is_left(tmp_path):
    proto, _ = chain(np.uint8)
    kernels = [step["row"] for step in compiled(proto, tmp_path).session(threads=1).explain({"x": [1, 16, 13, 10]})["steps"]]
    assert not [name for name in kernels if name in ("number_conv", "number_matmul", "reference")], kernels
    assert not [name for name in kernels if "winograd" in name], "filters numbers that f32 may not hold"
