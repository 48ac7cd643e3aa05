"""For every step from one version of an operator to another a model that takes it, and what cannot be said on the other side."""
from __future__ import annotations

import dataclasses

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


@dataclasses.dataclass
class OpsetCase:
    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]
    opset: int  # to go to
    rule: str  # "Softmax-13"
    refused: str = ""  # what the refusal says; empty: it can be said

    @property
    def up(self) -> bool:
        return self.opset > self.model.opset_import[0].version


def whole(*sizes: int, dtype=np.float32, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, sizes).astype(dtype)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def reals(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def case(rule: str, opset: int, to: int, x: np.ndarray | None, *constants: np.ndarray | None, refused: str = "", results: int = 1, open_sizes: bool = False, operator: str = "",
         computed: bool = False, **attributes) -> OpsetCase:
    """One node on `x` and constants; `computed`: the last operand is an input of the model too."""
    names = ["x"] if x is not None else []
    inputs = {"x": x} if x is not None else {}
    initializers = []
    for i, value in enumerate(constants):
        names.append("" if value is None else f"c{i}")
        if value is not None and computed and i == len(constants) - 1:
            inputs[f"c{i}"] = value
        elif value is not None:
            initializers.append(numpy_helper.from_array(value, f"c{i}"))
    outputs = [f"y{i}" for i in range(results)]
    node = helper.make_node(operator or rule.split("-")[0], names, outputs, "node", **attributes)
    declared = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), [f"{name}_{k}" if open_sizes else size for k, size in enumerate(value.shape)])
                for name, value in inputs.items()]
    graph = helper.make_graph([node], "case", declared, [], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    known = {value.name: value for value in onnx.shape_inference.infer_shapes(model).graph.value_info}
    model.graph.output.extend(known.get(name) or helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs)
    return OpsetCase(model, inputs, to, rule, refused)


X = whole(2, 4, 6)
IMAGE = whole(1, 4, 6, 6)


def reductions() -> list[OpsetCase]:
    out = []
    for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare", "Sum"):
        version = 13 if name == "Sum" else 18
        x = np.abs(X) + 1 if "Log" in name else X
        out += [case(f"Reduce{name}-11", 11, 10, x, axes=[-1, 1], keepdims=0), case(f"Reduce{name}-{version}", version - 1, version, x, axes=[1], keepdims=0),
                case(f"Reduce{name}-{version}", version, version - 1, x, ints(-1, 0), keepdims=1)]
    out += [case("ReduceSum-13", 13, 12, X, noop_with_empty_axes=1), case("ReduceMax-18", 18, 17, X, ints(), noop_with_empty_axes=0),
            case("ReduceMax-18", 18, 17, X, ints(1), computed=True, refused="is no constant")]
    return out


def axes() -> list[OpsetCase]:
    out = [case("ArgMax-11", 11, 10, X, axis=-1), case("ArgMin-11", 11, 10, X, axis=-2), case("Compress-11", 11, 10, X, np.array([True, False, True, True]), axis=-2),
           case("Concat-11", 11, 10, X, X, axis=-1), case("Flatten-11", 11, 10, X, axis=-1), case("Split-11", 11, 10, X, results=2, axis=-1),
           case("Squeeze-11", 11, 10, whole(2, 1, 3), axes=[-2]), case("Unsqueeze-11", 11, 10, X, axes=[-1, 0]), case("Gather-11", 11, 10, X, ints(-1, 0), axis=-1),
           case("Gather-11", 11, 10, X, ints(1, 0), axis=-1), case("Gather-11", 11, 10, X, ints(-1), open_sizes=True, axis=1, refused="counts? from the end of axis 1, whose size is open"),
           case("Gather-11", 11, 10, X, ints(1), computed=True, refused="may be below zero"), case("Squeeze-13", 12, 13, whole(2, 1, 3), axes=[1]),
           case("Squeeze-13", 13, 12, whole(2, 1, 3), ints(1)), case("Unsqueeze-13", 12, 13, X, axes=[0, 2]), case("Unsqueeze-13", 13, 12, X, ints(0, 2)),
           case("Split-13", 12, 13, X, results=2, axis=1, split=[1, 3]), case("Split-13", 13, 12, X, ints(1, 3), results=2, axis=1), case("Split-18", 17, 18, X, results=2, axis=1),
           case("Split-18", 18, 17, X, results=2, axis=1, num_outputs=2), case("Split-18", 18, 17, whole(2, 7), results=3, axis=1, num_outputs=3),
           case("Split-18", 18, 17, X, results=4, axis=2, num_outputs=4, open_sizes=True, refused="is open, and its last part may be smaller"),
           case("Scatter-11", 10, 11, X, np.zeros((1, 1, 2), np.int64), whole(1, 1, 2), axis=1), case("Scatter-11", 10, 11, X, -np.ones((1, 1, 2), np.int64), whole(1, 1, 2), axis=1, refused="counts from the end"),
           case("ScatterElements-11", 11, 10, X, np.ones((1, 1, 2), np.int64), whole(1, 1, 2), axis=-1), case("OneHot-11", 10, 11, None, ints(0, 2), ints(3), reals(0, 1)),
           case("OneHot-11", 11, 10, None, ints(0, 2), ints(3), reals(0, 1)), case("OneHot-11", 11, 10, None, ints(0, -2), ints(3), reals(0, 1), refused="counts from the end")]
    for name in ("Softmax", "LogSoftmax", "Hardmax"):
        out += [case(f"{name}-11", 11, 10, X, axis=-1), case(f"{name}-13", 12, 13, X), case(f"{name}-13", 12, 13, X, axis=2), case(f"{name}-13", 12, 13, X, axis=0, open_sizes=True),
                case(f"{name}-13", 13, 12, X), case(f"{name}-13", 13, 12, X, axis=1), case(f"{name}-13", 13, 12, X[0], axis=0), case(f"{name}-13", 12, 13, X[0])]
    return out


def operands() -> list[OpsetCase]:
    out = []
    for name in ("Max", "Mean", "Min", "Sum"):
        out.append(case(f"{name}-8", 8, 7, X, whole(6), refused="several shapes"))
    out += [case("Slice-10", 9, 10, X, starts=[1, 0], ends=[3, 2**63 - 1], axes=[1, 2]), case("Slice-10", 10, 9, X, ints(1), ints(3), ints(-1)), case("Slice-10", 10, 9, X, ints(1), ints(3)),
            case("Slice-10", 10, 9, X, ints(0), ints(5), ints(2), ints(2), refused="it has steps"), case("Slice-11", 11, 10, X, ints(1), ints(3), ints(-1)),
            case("Slice-11", 11, 10, X, ints(3), ints(0), ints(1), ints(-1), refused="goes backwards"), case("Pad-11", 10, 11, X, pads=[0, 1, 0, 0, -1, 2], value=2.5),
            case("Pad-11", 10, 11, X, pads=[0, 1, 0, 0, 1, 2], mode="reflect"), case("Pad-11", 11, 10, X, ints(0, 1, 0, 0, -1, 2), np.float32(2.5)), case("Pad-11", 11, 10, X, ints(0, 1, 0, 0, 1, 2), computed=True, refused="is no constant"),
            case("Pad-18", 18, 17, X, ints(1, 2), None, ints(-1)), case("Pad-18", 18, 17, X, ints(1, 2), np.float32(1), ints(1)), case("Pad-19", 19, 18, X, ints(0, 1, 0, 0, 0, 2), mode="wrap", refused="mode=wrap"),
            case("TopK-10", 9, 10, X, results=2, axis=1, k=2), case("TopK-10", 10, 9, X, ints(2), results=2, axis=1), case("TopK-11", 11, 10, X, ints(2), results=2, axis=1, largest=0, refused="attribute largest"),
            case("Clip-11", 10, 11, X, min=-1.0), case("Clip-11", 11, 10, X, np.float32(-1), np.float32(2)), case("Clip-11", 11, 10, X, None, np.float32(2)), case("Clip-11", 11, 10, X, np.float32(-1), computed=True, refused="is no constant"),
            case("Clip-12", 12, 11, X.astype(np.int32), np.int32(-1), np.int32(2), refused="does not take i32"), case("Dropout-10", 9, 10, X, results=2, refused="mask"), case("Dropout-10", 10, 9, X, results=2, refused="does not take bool there \\('y1'\\)"),
            case("Dropout-12", 11, 12, X, ratio=0.25), case("Dropout-12", 12, 11, X, np.float32(0.25), np.array(False)), case("Dropout-12", 12, 11, X, np.float32(0.25), np.array(True), refused="training_mode"),
            case("DFT-20", 19, 20, whole(1, 8, 2), axis=1), case("DFT-20", 20, 19, whole(1, 8, 2)), case("Constant-12", 12, 11, None, value_floats=[1.0, 2.0]), case("Constant-12", 12, 11, None, value_int=3),
            case("Reshape-14", 14, 13, X, ints(0, -1), allowzero=0), case("Reshape-14", 14, 13, whole(0, 3), ints(3, 0), allowzero=1, refused="size of 0"), case("Shape-15", 15, 14, X, start=1), case("Shape-15", 15, 14, X, start=-2, end=-1),
            case("Mod-28", 28, 27, X, whole(6, seed=2) * 2 + 7, refused="remainder of floats")]
    return out


def norms() -> list[OpsetCase]:
    unit = [np.abs(whole(4, seed=s)) + np.float32(1) for s in range(4)]
    half = [value.astype(np.float16) for value in unit]
    out = [case("BatchNormalization-9", 8, 9, X, *unit, spatial=1), case("BatchNormalization-14", 13, 14, X, *unit), case("BatchNormalization-14", 14, 13, X, *unit, training_mode=0),
           case("BatchNormalization-14", 14, 13, X, *unit, training_mode=1, results=3, refused="statistics"), case("BatchNormalization-15", 15, 14, X.astype(np.float16), *unit[:2], *half[2:], refused="several types"),
           case("GroupNormalization-18", 18, 17, X, *(value[:2] for value in unit[:2]), num_groups=2), case("GroupNormalization-18", 20, 12, X, *(value[:2] for value in unit[:2]), num_groups=2, epsilon=0.25, open_sizes=True),
           case("GroupNormalization-21", 21, 20, X, *unit[:2], num_groups=2), case("GroupNormalization-21", 20, 21, X, unit[0][:2], unit[1][:2], num_groups=2),
           case("LayerNormalization-17", 17, 16, X, whole(6), whole(6), axis=-1), case("LayerNormalization-17", 17, 16, X.astype(np.float16), whole(4, 6, dtype=np.float16), axis=1),
           case("RMSNormalization-23", 23, 22, X, whole(6), axis=-1), case("LayerNormalization-17", 17, 16, X, whole(6), results=2, refused="gives statistics")]
    return out


def layers() -> list[OpsetCase]:
    weight = whole(4, 2, 3, 3)
    odd = {"output_shape": [12, 12], "strides": [2, 2]}
    grid = np.linspace(-1, 1, 18, dtype=np.float32).reshape(1, 3, 3, 2)
    boxes = [reals(0, 0, 4, 4).reshape(1, 4), ints(0)]
    return [case("ConvTranspose-11", 10, 11, IMAGE, weight, **odd), case("ConvTranspose-11", 11, 10, IMAGE, weight, auto_pad="SAME_UPPER", strides=[2, 2]),
            case("ConvTranspose-11", 11, 10, IMAGE, weight, open_sizes=False, output_shape=[11, 12], strides=[2, 2], group=1),
            case("MaxPool-22", 21, 22, IMAGE, kernel_shape=[2, 2], strides=[3, 3], ceil_mode=1, refused="last window"), case("MaxPool-22", 22, 21, IMAGE, kernel_shape=[1, 1], strides=[2, 2], ceil_mode=1, refused="last window"),
            case("AveragePool-22", 21, 22, IMAGE, kernel_shape=[2, 2], strides=[3, 3], ceil_mode=1, refused="last window"), case("AveragePool-22", 22, 21, IMAGE, kernel_shape=[2, 2], strides=[3, 3], ceil_mode=1, refused="last window"),
            case("AveragePool-19", 19, 18, IMAGE, kernel_shape=[2, 2], dilations=[2, 1], refused="attribute dilations"), case("AveragePool-19", 19, 18, IMAGE, kernel_shape=[2, 2], dilations=[1, 1]),
            case("MaxPool-10", 10, 9, IMAGE, kernel_shape=[2, 2], ceil_mode=0), case("MaxPool-10", 10, 9, IMAGE, kernel_shape=[2, 2], ceil_mode=1, refused="attribute ceil_mode"),
            case("MaxPool-8", 8, 7, IMAGE, kernel_shape=[2, 2], results=2, refused="its result 1"), case("GridSample-20", 19, 20, IMAGE, grid, mode="bicubic"), case("GridSample-20", 20, 19, IMAGE, grid, mode="linear"),
            case("GridSample-20", 20, 19, IMAGE[:, :, None], np.zeros((1, 2, 2, 2, 3), np.float32), refused="samples volumes"), case("RoiAlign-16", 15, 16, IMAGE, *boxes, output_height=2, output_width=2),
            case("RoiAlign-16", 16, 15, IMAGE, *boxes, output_height=2, output_width=2, coordinate_transformation_mode="output_half_pixel"), case("RoiAlign-16", 16, 15, IMAGE, *boxes, output_height=2, output_width=2, refused="half a pixel"),
            case("QuantizeLinear-13", 13, 12, X, np.float32(0.5), np.uint8(3), axis=1), case("QuantizeLinear-13", 13, 12, X, reals(1, 2, 4, 8), np.zeros(4, np.uint8), axis=1, refused="scale for each channel"),
            case("DequantizeLinear-13", 13, 12, whole(2, 4, dtype=np.int8), np.float32(0.5), axis=0), case("Gemm-11", 11, 10, whole(2, 3), whole(3, 4)),
            case("DepthToSpace-11", 11, 10, IMAGE, blocksize=2, mode="CRD"), case("DepthToSpace-11", 11, 10, IMAGE, blocksize=2, mode="DCR"), case("DepthToSpace-11", 11, 10, IMAGE, blocksize=2, mode="CRD", open_sizes=True, refused="sizes are open"),
            case("ScatterElements-18", 18, 17, X, np.zeros((1, 1, 2), np.int64), whole(1, 1, 2), reduction="max", refused="reduction=max"),
            case("ScatterND-18", 18, 17, X, ints(0).reshape(1, 1), whole(1, 4, 6), reduction="min", refused="reduction=min"), case("ScatterND-16", 16, 15, X, ints(0).reshape(1, 1), whole(1, 4, 6), reduction="add", refused="attribute reduction"),
            case("GreaterOrEqual-12", 12, 11, X, X[:1]), case("LessOrEqual-12", 12, 11, X, X[:1]), case("HardSwish-14", 14, 13, X), case("CastLike-15", 15, 14, X, ints(1)),
            case("Mish-18", 18, 17, X), case("Gelu-20", 20, 19, X), case("Gelu-20", 20, 19, X, approximate="tanh"), case("Swish-24", 24, 23, X, alpha=0.5), case("Trilu-14", 14, 13, X, refused="does not exist there"),
            case("Relu-14", 14, 13, X.astype(np.int32), refused="does not take i32"), case("Einsum-12", 12, 11, X, equation="abc->acb", refused="does not exist there")]


def resizes() -> list[OpsetCase]:
    two = reals(1, 1, 2, 2)
    return [case("Upsample-9", 8, 9, IMAGE, scales=[1.0, 1.0, 2.0, 2.0]), case("Upsample-9", 9, 8, IMAGE, two), case("Upsample-10", 9, 10, IMAGE, two, mode="linear"), case("Resize-10", 10, 9, IMAGE, two),
            case("Resize-10", 10, 9, IMAGE, reals(1, 1, 0.5, 2), refused="makes an axis smaller"), case("Resize-11", 10, 11, IMAGE, two), case("Resize-11", 10, 11, IMAGE, reals(1, 1, 1.5, 0.5), mode="linear"),
            case("Resize-11", 11, 10, IMAGE, reals(), two), case("Resize-11", 11, 10, IMAGE, reals(), reals(), ints(1, 4, 12, 6), coordinate_transformation_mode="asymmetric", mode="linear"),
            case("Resize-11", 11, 10, IMAGE, reals(), two, mode="linear", refused="coordinate_transformation_mode=half_pixel"), case("Resize-11", 11, 10, IMAGE, reals(), two, mode="cubic", refused="mode=cubic"),
            case("Resize-13", 12, 13, IMAGE, reals(), two, coordinate_transformation_mode="tf_half_pixel_for_nn", refused="tf_half_pixel_for_nn"), case("Resize-13", 13, 12, IMAGE, None, two), case("Resize-13", 13, 12, IMAGE, None, None, ints(1, 4, 9, 7), mode="linear"),
            case("Resize-18", 18, 17, IMAGE, None, reals(2, 3), axes=[3, 2]), case("Resize-18", 18, 17, IMAGE, None, None, ints(9, 7), axes=[-2, -1], mode="linear"), case("Resize-18", 18, 17, IMAGE, None, reals(1, 1, 0.5, 0.5), mode="linear", antialias=1, refused="antialias"),
            case("Resize-18", 18, 17, IMAGE, None, None, ints(9, 7), axes=[2, 3], open_sizes=True, refused="the others are open"), case("Resize-19", 19, 18, IMAGE, None, two, mode="linear", coordinate_transformation_mode="half_pixel_symmetric", refused="half_pixel_symmetric")]


CASES = [*reductions(), *axes(), *operands(), *norms(), *layers(), *resizes()]
