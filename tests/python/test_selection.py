"""Operators about indices, selection, quantisation and sizes born from data, against ONNX Runtime.

Each case runs twice: with fixed sizes and all operands but the first inside the model, and with every operand an input, those of `open_sizes`
of unknown sizes."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

RANDOM = np.random.default_rng(20)


@dataclasses.dataclass
class Case:
    op: str
    opset: int
    inputs: list  # arrays; None: absent
    attributes: dict = dataclasses.field(default_factory=dict)
    outputs: int = 1
    open_inputs: bool = True  # whether the form with every operand an input is legal for us
    tolerance: float = 1e-6
    off_by_one: bool = False  # quantised results may differ by one step in a few places

    @property
    def name(self) -> str:
        words = [f"{key}={value}" for key, value in self.attributes.items()]
        sizes = "x".join(map(str, self.inputs[0].shape)) if self.inputs else ""
        return "-".join([f"{self.op}{self.opset}", str(self.inputs[0].dtype) if self.inputs else "", sizes, *words]).replace(" ", "")


def f32(*sizes, low=-4, high=4):
    return RANDOM.uniform(low, high, sizes).astype(np.float32)


def steps(*sizes, low=-3, high=3, dtype=np.float32):
    return RANDOM.integers(low, high + 1, sizes).astype(dtype)


def i64(*values):
    return np.array(values, np.int64)


def scalar(value, dtype):
    return np.array(value, dtype)


def boxes(images, count):
    corners = RANDOM.uniform(0, 10, (images, count, 2)).astype(np.float32)
    return np.concatenate([corners, corners + RANDOM.uniform(0.5, 4, corners.shape).astype(np.float32)], axis=2)


def rois(count, most):
    corners = RANDOM.uniform(0, most / 2, (count, 2)).astype(np.float32)
    return np.concatenate([corners, corners + RANDOM.uniform(1, most / 2, (count, 2)).astype(np.float32)], axis=1)


def distinct(*sizes):
    return RANDOM.permutation(int(np.prod(sizes))).reshape(sizes).astype(np.float32)


def scatter_cases():
    for opset, reductions in ((11, [None]), (16, ["add", "mul"]), (18, ["add", "max", "min"])):
        for reduction in reductions:
            attributes = {} if reduction is None else {"reduction": reduction}
            line = np.stack([RANDOM.permutation(9)[:5] for _ in range(12)], axis=1).reshape(5, 3, 4).astype(np.int64) - 4
            yield Case("ScatterElements", opset, [f32(9, 3, 4), line, f32(5, 3, 4)], {"axis": 0, **attributes})
            places = np.stack(np.unravel_index(RANDOM.permutation(12)[:7], (3, 4)), axis=1).astype(np.int64)
            yield Case("ScatterND", opset, [f32(3, 4, 65), places, f32(7, 65)], attributes)
    yield Case("ScatterElements", 18, [f32(4, 200), steps(4, 300, low=-200, high=199, dtype=np.int64), f32(4, 300)],
               {"axis": -1, "reduction": "add"}, tolerance=1e-5)
    yield Case("Scatter", 9, [f32(3, 3), i64([1, 0, 2], [0, 2, 1]), f32(2, 3)])
    yield Case("GatherND", 12, [f32(2, 3, 4), steps(2, 5, 1, low=-3, high=2, dtype=np.int64)], {"batch_dims": 1})


def selection_cases():
    yield Case("TopK", 10, [f32(3, 50), i64(7)], {}, 2)
    for axis, largest in ((1, 1), (0, 0), (-1, 0)):
        yield Case("TopK", 11, [steps(4, 30, 6), i64(3)], {"axis": axis, "largest": largest}, 2)
    yield Case("TopK", 11, [steps(2, 2000, low=-500, high=500, dtype=np.int64), i64(40)], {}, 2)
    yield Case("NonZero", 13, [steps(5, 40, low=-1, high=1)])
    yield Case("NonZero", 13, [np.zeros((5, 40), np.int64)])
    yield Case("NonZero", 13, [RANDOM.integers(0, 2, (3, 4, 5)).astype(bool)])
    yield Case("Compress", 11, [f32(4, 6, 3), RANDOM.integers(0, 2, 6).astype(bool)], {"axis": 1})
    yield Case("Compress", 11, [f32(4, 6), RANDOM.integers(0, 2, 20).astype(bool)])
    for attributes in ({}, {"sorted": 0}, {"axis": 0}, {"axis": 1, "sorted": 1}):
        yield Case("Unique", 11, [steps(6, 4, low=0, high=1 if "axis" in attributes else 9)], attributes, 4)
    yield Case("OneHot", 11, [steps(3, 5, low=-7, high=7, dtype=np.int64), scalar(7, np.int64), np.array([0.5, 3], np.float32)], {"axis": 1})
    yield Case("OneHot", 11, [steps(4, low=0, high=6), scalar(7, np.float32), np.array([0, 3], np.float32)])
    for exclusive in (0, 1):
        for reverse in (0, 1):
            yield Case("CumSum", 14, [f32(3, 70, 5), scalar(1, np.int64)], {"exclusive": exclusive, "reverse": reverse}, tolerance=1e-5)
    yield Case("CumSum", 11, [steps(3, 7, dtype=np.int32), scalar(-2, np.int32)])
    for k in (-2, 0, 3):
        yield Case("Trilu", 14, [f32(2, 5, 7), scalar(k, np.int64)], {"upper": int(k <= 0)})
    yield Case("EyeLike", 9, [f32(4, 6)], {"k": 1, "dtype": TensorProto.INT64})
    yield Case("Hardmax", 11, [steps(3, 4, 5)], {"axis": 1})
    yield Case("Hardmax", 13, [steps(3, 4, 5)], {"axis": 1})
    yield Case("ReverseSequence", 10, [f32(6, 4, 3), i64(6, 1, 0, 3)], {"time_axis": 0, "batch_axis": 1})
    yield Case("ReverseSequence", 10, [f32(4, 6), i64(6, 1, 2, 3)], {"time_axis": 1, "batch_axis": 0})
    for centre in (0, 1):
        yield Case("NonMaxSuppression", 11, [boxes(2, 60), f32(2, 3, 60, low=0, high=1), i64(9), np.array([0.3], np.float32),
                                             np.array([0.2], np.float32)], {"center_point_box": centre})
    yield Case("NonMaxSuppression", 10, [boxes(1, 20), f32(1, 1, 20, low=0, high=1), i64(4), np.array([0.5], np.float32),
                                         np.array([2.0], np.float32)])


def image_cases():
    for order in (0, 1):
        yield Case("MaxPool", 12, [distinct(2, 3, 9, 11)], {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1],
                                                            "storage_order": order}, 2)
    yield Case("MaxPool", 12, [distinct(1, 2, 12)], {"kernel_shape": [3], "dilations": [2], "strides": [2]}, 2)
    yield Case("MaxUnpool", 11, [f32(1, 1, 2, 2), i64([[[[5, 7], [13, 15]]]]).reshape(1, 1, 2, 2)], {"kernel_shape": [2, 2], "strides": [2, 2]})
    images = i64(0, 1, 1, 0, 1)
    for opset, attributes in ((10, {}), (16, {}), (16, {"coordinate_transformation_mode": "output_half_pixel"}), (16, {"mode": "max"})):
        sizes = {"output_height": 3, "output_width": 4, "spatial_scale": 0.5, "sampling_ratio": 0 if opset == 10 else 2}
        yield Case("RoiAlign", opset, [f32(2, 37, 14, 15), rois(5, 30), images], {**sizes, **attributes}, tolerance=1e-5)
    regions = np.concatenate([images[:, None].astype(np.float32), rois(5, 30)], axis=1)
    yield Case("MaxRoiPool", 11, [f32(2, 3, 14, 15), regions], {"pooled_shape": [3, 2], "spatial_scale": 0.5})
    yield Case("Col2Im", 18, [f32(2, 3 * 6, 12), i64(5, 5), i64(2, 3)], {}, open_inputs=False)
    yield Case("Col2Im", 18, [f32(1, 2 * 4, 9), i64(5, 4), i64(2, 2)], {"strides": [2, 1], "pads": [0, 0, 1, 1], "dilations": [1, 2]},
               open_inputs=False, tolerance=1e-5)
    yield Case("CenterCropPad", 18, [f32(5, 8, 3), i64(8, 5)], {"axes": [0, 1]})
    yield Case("Det", 11, [f32(3, 4, 4)], tolerance=1e-4)
    yield Case("Shrink", 9, [f32(5, 7)], {"lambd": 1.5, "bias": 0.5})
    yield Case("Pad", 13, [f32(3, 4), i64(1, 0, -1, 2), scalar(2.5, np.float32)])
    yield Case("Range", 11, [scalar(0.25, np.float32), scalar(9, np.float32), scalar(0.7, np.float32)])
    yield Case("Range", 11, [scalar(9, np.int32), scalar(-4, np.int32), scalar(-3, np.int32)])


def quantised_cases():
    bytes_of = lambda *sizes, dtype=np.uint8: RANDOM.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, sizes).astype(dtype)  # noqa: E731
    half = scalar(0.05, np.float32)
    yield Case("QuantizeLinear", 13, [f32(3, 40), half, scalar(7, np.uint8)])
    yield Case("QuantizeLinear", 13, [f32(3, 4, 5), f32(4, low=0.01, high=0.1), steps(4, dtype=np.int8)], {"axis": 1})
    yield Case("QuantizeLinear", 21, [f32(6, 8), f32(3, 8, low=0.01, high=0.1), steps(3, 8, dtype=np.int8)], {"axis": 0, "block_size": 2})
    yield Case("DequantizeLinear", 13, [bytes_of(3, 4, 5), f32(4, low=0.01, high=0.1), bytes_of(4)], {"axis": 1})
    yield Case("DequantizeLinear", 10, [steps(3, 4, low=-2**30, high=2**30, dtype=np.int32), half])
    yield Case("DequantizeLinear", 21, [bytes_of(6, 8), f32(6, 2, low=0.01, high=0.1), bytes_of(6, 2)], {"axis": 1, "block_size": 4})
    yield Case("DynamicQuantizeLinear", 11, [f32(5, 9)], {}, 3)
    yield Case("MatMulInteger", 10, [bytes_of(5, 40), bytes_of(40, 6), scalar(3, np.uint8), bytes_of(6)])
    yield Case("ConvInteger", 10, [bytes_of(2, 3, 9, 8), bytes_of(4, 3, 3, 2), scalar(120, np.uint8), scalar(100, np.uint8)],
               {"pads": [1, 0, 1, 1], "strides": [2, 1]})
    yield Case("QLinearMatMul", 10, [bytes_of(5, 40), half, scalar(3, np.uint8), bytes_of(40, 6), scalar(0.03, np.float32), scalar(130, np.uint8),
                                     scalar(4, np.float32), scalar(128, np.uint8)], off_by_one=True)
    for groups in (1, 3):
        # Signed weights of 7 bits: with 8, ONNX Runtime's sums of two products overflow on processors without VNNI (its guide to quantisation says so).
        yield Case("QLinearConv", 10, [bytes_of(2, 3, 9, 8), half, scalar(120, np.uint8), bytes_of(6, 3 // groups, 3, 3, dtype=np.int8) // 2,
                                       f32(6, low=0.01, high=0.1), np.zeros(6, np.int8), scalar(3, np.float32), scalar(128, np.uint8),
                                       steps(6, low=-900, high=900, dtype=np.int32)], {"pads": [1, 1, 1, 1], "group": groups}, off_by_one=True)


CASES = [*scatter_cases(), *selection_cases(), *image_cases(), *quantised_cases()]


def model_of(case: Case, is_open: bool) -> onnx.ModelProto:
    names = [f"x{i}" if array is not None else "" for i, array in enumerate(case.inputs)]
    inputs, weights = [], []
    for i, (name, array) in enumerate(zip(names, case.inputs)):
        if i > 0 and not is_open:
            weights.append(numpy_helper.from_array(array, name))
            continue
        sizes = [f"{name}_{axis}" for axis in range(array.ndim)] if is_open and i == 0 else array.shape
        inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), sizes))
    results = [f"y{i}" for i in range(case.outputs)]
    node = helper.make_node(case.op, names, results, **case.attributes)
    graph = helper.make_graph([node], "case", inputs, [onnx.ValueInfoProto(name=name) for name in results], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=9)


def without_types(path, model):
    """ONNX Runtime wants the outputs' types; shape inference gives them."""
    inferred = onnx.shape_inference.infer_shapes(model)
    onnx.save(inferred, path)
    return path


# Operands as constants, and as graph inputs where none of them must be fixed.
FORMS = [(case, is_open) for case in CASES for is_open in ((False, True) if case.open_inputs else (False,))]


@pytest.mark.parametrize(("case", "is_open"), FORMS, ids=[f"{case.name}-{'open' if is_open else 'fixed'}" for case, is_open in FORMS])
def test_as_onnx_runtime(polyphase, tmp_path, case, is_open):
    model = model_of(case, is_open)
    path = without_types(tmp_path / "case.onnx", model)
    feeds = {value.name: case.inputs[int(value.name[1:])] for value in model.graph.input}
    expected = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, feeds)
    found = polyphase.run_arrays(path, feeds, tmp_path)
    for i, right in enumerate(expected):
        ours = found[f"y{i}"]
        assert ours.dtype == right.dtype and ours.shape == right.shape, (i, ours.dtype, ours.shape, right.dtype, right.shape)
        if case.off_by_one:
            far = np.abs(ours.astype(np.int64) - right.astype(np.int64))
            assert far.max() <= 1 and np.count_nonzero(far) <= 0.02 * far.size
        elif right.dtype.kind == "f":
            np.testing.assert_allclose(ours, right, rtol=case.tolerance, atol=case.tolerance)
        else:
            np.testing.assert_array_equal(ours, right)
