"""Writes *.cases beside this file: operators with integer-valued random operands and the results that PyTorch or ONNX give.

Run it with the project's Python environment: python tests/ops/data/make_cases.py. The seed is fixed; results in double precision.
"""

import pathlib

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from onnx import helper
from onnx.reference import ReferenceEvaluator

HERE = pathlib.Path(__file__).parent
NAMES = {"float32": "f32", "float64": "f64", "float16": "f16", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16", "int32": "i32",
         "uint32": "u32", "int64": "i64", "uint64": "u64", "bool": "bool"}


def number(value):
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if np.isinf(value):
        return "inf" if value > 0 else "-inf"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def tensor(array):
    array = np.asarray(array)
    values = ", ".join(number(v) for v in array.ravel().tolist())
    return f"{NAMES[str(array.dtype)]}[{', '.join(map(str, array.shape))}]{{{values}}}"


def word(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(word(v) for v in value) + "]"
    return str(value)


def line(op, attributes, operands, result, tolerance=None, name="y"):
    attribute_text = " ".join(f"{k}={word(v)}" for k, v in attributes.items())
    operand_text = " ".join(f"{k}={tensor(v)}" for k, v in operands.items() if v is not None)
    tolerance_text = "" if tolerance is None else f" tolerance={tolerance!r}"
    return f"{op} | {attribute_text} | {operand_text} | {name}={tensor(result)}{tolerance_text}\n"


class Random:
    """Small integers and choices, the same in every run."""

    def __init__(self, seed):
        self.source = np.random.default_rng(seed)

    def between(self, low, high):
        return int(self.source.integers(low, high + 1))

    def several(self, n, low, high):
        return [self.between(low, high) for _ in range(n)]

    def pick(self, items):
        return items[self.between(0, len(items) - 1)]

    def values(self, shape, low=-4, high=4, dtype="float32"):
        return self.source.integers(low, high + 1, size=shape).astype(dtype)


def as_double(array):
    return None if array is None else torch.from_numpy(array.astype("float64"))


def convolutions():
    random = Random(11)
    out = ["# conv against torch.nn.functional.conv1d/2d/3d in double precision, exact on integers.\n"]
    while len(out) < 70:
        rank = random.pick([1, 1, 2, 2, 2, 3])
        groups = random.pick([1, 1, 2, 3])
        shape = [random.between(0 if random.between(0, 9) == 0 else 1, 2), groups * random.between(1, 2)] + random.several(rank, 1, 5)
        outputs = groups * random.between(1, 2)
        kernel, stride, dilation, pad = (random.several(rank, low, high) for low, high in ((1, 3), (1, 3), (1, 2), (0, 2)))
        dtype = random.pick(["float32", "float32", "float64", "int32", "int64"])
        x, w = random.values(shape, dtype=dtype), random.values([outputs, shape[1] // groups] + kernel, dtype=dtype)
        b = random.values([outputs], dtype=dtype) if random.between(0, 1) else None
        post = [p + random.between(0, 1) for p in pad]
        if any(i + p + q < (k - 1) * d + 1 for i, p, q, k, d in zip(shape[2:], pad, post, kernel, dilation)):
            continue
        padded = F.pad(as_double(x), [v for p, q in reversed(list(zip(pad, post))) for v in (p, q)])
        y = [F.conv1d, F.conv2d, F.conv3d][rank - 1](padded, as_double(w), as_double(b), stride, 0, dilation, groups)
        out.append(line("conv", dict(stride=stride, dilation=dilation, groups=groups, pre=pad, post=post), dict(x=x, w=w, b=b),
                        y.numpy().astype(dtype)))
    return out


def transposed_convolutions():
    random = Random(12)
    out = ["# conv_transpose against torch.nn.functional.conv_transpose1d/2d/3d in double precision, exact on integers;\n",
           "# pre = padding, post = padding - output_padding.\n"]
    while len(out) < 90:
        rank = random.pick([1, 1, 2, 2, 2, 3])
        groups = random.pick([1, 1, 2, 3])
        shape = [random.between(0 if random.between(0, 9) == 0 else 1, 2), groups * random.between(1, 2)] + random.several(rank, 1, 4 if rank < 3 else 2)
        outputs = random.between(1, 2)
        kernel, stride, dilation, pad = (random.several(rank, low, high) for low, high in ((1, 4 if rank < 3 else 2), (1, 4 if rank < 3 else 2), (1, 3), (0, 3)))
        extra = [random.between(0, max(s, d) - 1) for s, d in zip(stride, dilation)]
        sizes = [(i - 1) * s - 2 * p + d * (k - 1) + e + 1 for i, s, p, d, k, e in zip(shape[2:], stride, pad, dilation, kernel, extra)]
        if min(sizes) < 1 or int(np.prod(sizes)) > 150:
            continue
        dtype = random.pick(["float32", "float32", "float64", "int32", "int64"])
        x, w = random.values(shape, dtype=dtype), random.values([shape[1], outputs] + kernel, dtype=dtype)
        b = random.values([outputs * groups], dtype=dtype) if random.between(0, 1) else None
        y = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][rank - 1](
            as_double(x), as_double(w), as_double(b), stride, pad, extra, groups, dilation)
        out.append(line("conv_transpose", dict(stride=stride, dilation=dilation, groups=groups, pre=pad, post=[p - e for p, e in zip(pad, extra)]),
                        dict(x=x, w=w, b=b), y.numpy().astype(dtype)))
    return out


def matrix_products():
    random = Random(13)
    out = ["# matmul against numpy.matmul, exact on integers.\n"]
    shapes = [([3], [3]), ([2, 3], [3]), ([3], [3, 2]), ([2, 3], [3, 4]), ([2, 2, 3], [3, 2]), ([2, 1, 2, 3], [3, 3, 1]), ([3], [2, 3, 2]),
              ([2, 2, 3], [3]), ([0, 3], [3, 2]), ([2, 0], [0, 3]), ([2, 1, 3], [1, 3, 2])]
    for dtype in ("float32", "float64", "int32", "int64", "uint8"):
        for left, right in shapes:
            low = 0 if dtype == "uint8" else -4
            a, b = random.values(left, low, 4, dtype), random.values(right, low, 4, dtype)
            out.append(line("matmul", {}, dict(a=a, b=b), np.matmul(a, b)))
    return out


def pools():
    random = Random(14)
    out = ["# max_pool, avg_pool against torch.nn.functional (padding at most half the kernel) in double precision.\n"]
    while len(out) < 100:
        rank = random.pick([1, 2, 2, 3])
        shape = [random.between(1, 2), random.between(1, 2)] + random.several(rank, 1, 7 if rank < 3 else 4)
        kernel, stride = random.several(rank, 1, 4), random.several(rank, 1, 4)
        pad = [random.between(0, k // 2) for k in kernel]
        ceil, include_pad = bool(random.between(0, 1)), bool(random.between(0, 1))
        largest = random.between(0, 1) == 1
        dilation = random.several(rank, 1, 2) if largest else [1] * rank
        x = random.values(shape, dtype="float32")
        attributes = dict(kernel=kernel, stride=stride, dilation=dilation, pre=pad, post=pad, ceil=ceil)
        try:
            if largest:
                y = [F.max_pool1d, F.max_pool2d, F.max_pool3d][rank - 1](as_double(x), kernel, stride, pad, dilation, ceil)
            else:
                y = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][rank - 1](as_double(x), kernel, stride, pad, ceil, include_pad)
                attributes["include_pad"] = include_pad
        except RuntimeError:
            continue
        out.append(line("max_pool" if largest else "avg_pool", attributes, dict(x=x), y.numpy().astype("float32")))
    return out


def pads():
    random = Random(15)
    out = ["# pad against numpy.pad (no crop, but longer than the operand) and torch.nn.functional.pad (constant with crop).\n"]
    while len(out) < 60:
        shape = random.several(random.between(1, 4), 1, 4)
        mode = random.pick(["constant", "reflect", "edge", "wrap"])
        dtype = random.pick(["float32", "int32", "uint8", "int64"])
        x = random.values(shape, 0, 9, dtype)
        pre, post = random.several(len(shape), 0, 5 if len(shape) < 3 else 2), random.several(len(shape), 0, 3 if len(shape) < 3 else 1)
        y = np.pad(x, list(zip(pre, post)), mode=mode, **({"constant_values": 7} if mode == "constant" else {}))
        out.append(line("pad", dict(pre=pre, post=post, mode=mode, **({"value": 7.0} if mode == "constant" else {})), dict(x=x), y))
    while len(out) < 75:
        shape = random.several(3, 2, 4)
        pre, post = random.several(3, -1, 2), random.several(3, -1, 2)
        x = random.values(shape)
        y = F.pad(torch.from_numpy(x), [v for p, q in reversed(list(zip(pre, post))) for v in (p, q)], value=2.0)
        out.append(line("pad", dict(pre=pre, post=post, value=2.0), dict(x=x), y.numpy()))
    return out


def norms():
    random = Random(16)
    out = ["# Normalisations and softmax against torch in double precision.\n"]

    def parameters(n):
        return [random.values([n], 1, 4, "float64") / 2 for _ in range(2)]

    def add(op, attributes, operands, y):
        out.append(line(op, attributes, operands, np.asarray(y), 1e-12))

    for shape in ([2, 4, 3], [1, 4, 1, 2, 2], [3, 2]):
        x = random.values(shape, dtype="float64")
        tx, channels = torch.from_numpy(x), shape[1]
        scale, bias = parameters(channels)
        mean, variance = parameters(channels)
        ts, tb, tm, tv = map(torch.from_numpy, (scale, bias, mean, variance))
        add("batch_norm", dict(epsilon=1e-3), dict(x=x, scale=scale, bias=bias, mean=mean, variance=variance), F.batch_norm(tx, tm, tv, ts, tb, eps=1e-3))
        if len(shape) > 2:
            add("instance_norm", dict(epsilon=1e-2), dict(x=x, scale=scale, bias=bias), F.instance_norm(tx, None, None, ts, tb, eps=1e-2))
            add("instance_norm", {}, dict(x=x), F.instance_norm(tx))
        for groups in (1, 2, channels):
            add("group_norm", dict(groups=groups, epsilon=1e-2), dict(x=x, scale=scale, bias=bias), F.group_norm(tx, groups, ts, tb, eps=1e-2))
        add("group_norm", dict(groups=2), dict(x=x), F.group_norm(tx, 2))
        for axis in range(len(shape)):
            rest = shape[axis:]
            scale, bias = random.values(rest, 1, 4, "float64"), random.values(rest, 1, 4, "float64")
            add("layer_norm", dict(axis=axis, epsilon=1e-2), dict(x=x, scale=scale, bias=bias),
                F.layer_norm(tx, rest, torch.from_numpy(scale), torch.from_numpy(bias), eps=1e-2))
            add("layer_norm", dict(axis=axis), dict(x=x), F.layer_norm(tx, rest))
            add("softmax", dict(axis=axis), dict(x=x), torch.softmax(tx, axis))
            add("log_softmax", dict(axis=axis), dict(x=x * 100), torch.log_softmax(tx * 100, axis))
        last = random.values([shape[-1]], 1, 4, "float64")
        add("layer_norm", dict(axis=1), dict(x=x, scale=last), F.layer_norm(tx, shape[1:]) * torch.from_numpy(last))
    return out


def onnx_resize(x, sizes, scales, roi, attributes):
    """The ONNX reference evaluator's result in double precision, and whether ONNX Runtime gives the same in float32 (None: it cannot)."""
    inputs, constants = ["x", "", "", ""], []

    def constant(place, name, kind, values):
        inputs[place] = name
        constants.append(helper.make_tensor(name, kind, [len(values)], values))

    if roi:
        constant(1, "roi", onnx.TensorProto.FLOAT, roi)
    if scales:
        constant(2, "scales", onnx.TensorProto.FLOAT, scales)
    else:
        constant(3, "sizes", onnx.TensorProto.INT64, sizes)

    def model(dtype):
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        node = helper.make_node("Resize", inputs, ["y"], **attributes)
        graph = helper.make_graph([node], "resize", [helper.make_tensor_value_info("x", kind, x.shape)],
                                  [helper.make_tensor_value_info("y", kind, None)], constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
        made.ir_version = 9
        return made

    y = ReferenceEvaluator(model(x.dtype)).run(None, {"x": x})[0]
    try:
        fast = onnxruntime.InferenceSession(model("float32").SerializeToString()).run(None, {"x": x.astype("float32")})[0]
    except Exception:
        return y, None
    return y, fast.shape == y.shape and np.allclose(fast, y, rtol=1e-4, atol=1e-4)


def resizes():
    random = Random(17)
    onnxruntime.set_default_logger_severity(4)
    out = ["# resize against the ONNX reference evaluator in double precision, where ONNX Runtime agrees with it, and torch.\n"]
    rules = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
    left_out = []
    while len(out) < 90:
        mode, rule = random.pick(["nearest", "linear", "cubic"]), random.pick(rules)
        height, width = random.several(2, 1, 5)
        x = random.values([1, random.between(1, 2), height, width], 0, 20, "float64")
        attributes = dict(mode=mode, coordinate_transformation_mode=rule)
        ours = dict(mode=mode, coordinate=rule)
        if mode == "nearest":
            attributes["nearest_mode"] = ours["nearest"] = random.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
        else:
            if mode == "cubic":
                attributes["cubic_coeff_a"] = ours["cubic_coefficient"] = random.pick([-0.75, -0.5])
                exclude = random.between(0, 1)
                attributes["exclude_outside"], ours["exclude_outside"] = exclude, bool(exclude)
            if rule == "half_pixel" and random.between(0, 2) == 0:
                attributes["antialias"], ours["antialias"] = 1, True
        factors = [0.5, 1.5, 2.0, 3.0, 0.75, 1.25]
        scales = [1.0, 1.0, random.pick(factors), random.pick(factors)] if random.between(0, 1) else []
        sizes = [int(np.floor(n * s)) for n, s in zip(x.shape, scales)] if scales else [*x.shape[:2], *random.several(2, 1, 9)]
        if min(sizes) < 1:
            continue
        y, same = onnx_resize(x, sizes, scales, [], attributes)
        if same is False:
            left_out.append((attributes, x.shape, sizes, scales))
            continue
        tolerance = 1e-6 if mode == "cubic" else 1e-12  # the evaluator keeps cubic coefficients in float32
        out.append(line("resize", dict(sizes=sizes, **(dict(scales=scales) if scales else {}), **ours), dict(x=x), y, tolerance))
    for mode in ("nearest", "linear", "cubic"):
        roi = [0.0, 0.0, 0.25, -0.25, 1.0, 1.0, 0.75, 1.25]
        x = random.values([1, 1, 4, 5], 0, 20, "float64")
        sizes = [1, 1, 3, 6]
        y, _ = onnx_resize(x, sizes, [], roi, dict(mode=mode, coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=9.0))
        out.append(line("resize", dict(sizes=sizes, mode=mode, coordinate="tf_crop_and_resize", roi=roi, extrapolation=9.0), dict(x=x), y, 1e-6))
    for shape, size in (([1, 2, 5], [9]), ([2, 1, 3, 4], [6, 8]), ([1, 1, 2, 3, 2], [5, 3, 4])):
        x = random.values(shape, 0, 20, "float64")
        tx, sizes = torch.from_numpy(x), shape[:2] + size
        linear = {3: "linear", 4: "bilinear", 5: "trilinear"}[len(shape)]
        out.append(line("resize", dict(sizes=sizes, coordinate="asymmetric", nearest="floor"), dict(x=x), F.interpolate(tx, size, mode="nearest").numpy()))
        out.append(line("resize", dict(sizes=sizes, nearest="round_prefer_ceil"), dict(x=x), F.interpolate(tx, size, mode="nearest-exact").numpy()))
        for corners, rule in ((False, "pytorch_half_pixel"), (True, "align_corners")):
            y = F.interpolate(tx, size, mode=linear, align_corners=corners).numpy()
            out.append(line("resize", dict(sizes=sizes, mode="linear", coordinate=rule), dict(x=x), y, 1e-12))
            if len(shape) == 4:
                y = F.interpolate(tx, size, mode="bicubic", align_corners=corners).numpy()
                out.append(line("resize", dict(sizes=sizes, mode="cubic", coordinate=rule), dict(x=x), y, 1e-12))
    print(f"resize: left out {len(left_out)} cases in which ONNX Runtime differs from the reference evaluator:")
    for case in left_out:
        print("  ", *case)
    return out


def shuffles():
    random = Random(18)
    out = ["# depth_to_space, space_to_depth against torch.nn.functional.pixel_shuffle and the definition's reshape and transpose.\n"]
    for block, channels in ((1, 2), (2, 1), (2, 3), (3, 2)):
        x = random.values([2, channels * block * block, 2, 3], 0, 99, "int32")
        y = F.pixel_shuffle(torch.from_numpy(x), block).numpy()
        out.append(line("depth_to_space", dict(block=block, mode="crd"), dict(x=x), y))
        n, _, h, w = x.shape
        y = x.reshape(n, block, block, channels, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, channels, h * block, w * block)
        out.append(line("depth_to_space", dict(block=block), dict(x=x), y))
        out.append(line("space_to_depth", dict(block=block), dict(x=y), x))
    return out


def run_onnx(op, operands, attributes):
    """ONNX Runtime's result, or None where it refuses."""
    infos = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, value.shape) for name, value in operands.items()]
    node = helper.make_node(op, list(operands), ["y"], **attributes)
    graph = helper.make_graph([node], op, infos, [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])
    model.ir_version = 10
    try:
        return onnxruntime.InferenceSession(model.SerializeToString()).run(None, operands)[0]
    except Exception:
        return None


def onnx_transposed_convolution(random):
    rank = random.pick([1, 1, 2])
    group = random.pick([1, 1, 2])
    x = random.values([1, group] + random.several(rank, 1, 4))
    w = random.values([group, random.between(1, 2)] + random.several(rank, 1, 4))
    operands = dict(x=x, w=w, **(dict(b=random.values([group * w.shape[1]])) if random.between(0, 1) else {}))
    attributes = dict(strides=random.several(rank, 1, 3), dilations=random.several(rank, 1, 2))
    if group > 1:
        attributes["group"] = group
    if random.between(0, 1):
        attributes["output_padding"] = random.several(rank, 0, 1)
    padding = random.pick(["NOTSET", "pads", "VALID", "SAME_UPPER", "SAME_LOWER"])
    if padding == "pads":
        attributes["pads"] = random.several(2 * rank, 0, 3)
    elif padding != "NOTSET":
        attributes["auto_pad"] = padding
    if random.between(0, 2) == 0:
        attributes["output_shape"] = random.several(rank, 1, 9)
    added = attributes.get("output_padding", [0] * rank)
    reach = [(k - 1) * d + op for k, d, op in zip(w.shape[2:], attributes["dilations"], added)]
    if padding.startswith("SAME") and "output_shape" not in attributes and any(r + 1 < s for r, s in zip(reach, attributes["strides"])):
        return None  # ONNX Runtime gives fewer elements than the specification's input size times stride
    return "ConvTranspose", operands, attributes


def onnx_window(random):
    op = random.pick(["Conv", "MaxPool", "AveragePool"])
    rank = random.pick([1, 1, 2])
    x = random.values([1, 1] + random.several(rank, 1, 9))
    kernel = random.several(rank, 1, 4)
    attributes = dict(strides=random.several(rank, 1, 4), auto_pad=random.pick(["VALID", "SAME_UPPER", "SAME_LOWER"]))
    if random.between(0, 1) and attributes["auto_pad"] == "VALID":  # with SAME, ONNX Runtime refuses or ignores dilations
        attributes["dilations"] = random.several(rank, 1, 2)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, attributes.get("dilations", [1] * rank))]
    if attributes["auto_pad"] == "VALID" and any(span > size for span, size in zip(spans, x.shape[2:])):
        return None  # ONNX Runtime pools such inputs, against the specification
    if op == "Conv":
        return op, dict(x=x, w=random.values([2, 1] + kernel)), attributes
    attributes["kernel_shape"] = kernel
    if op == "AveragePool" and random.between(0, 1):
        attributes["count_include_pad"] = 1
    return op, dict(x=x), attributes


def onnx_forms():
    random = Random(19)
    onnxruntime.set_default_logger_severity(4)
    out = ["# ONNX's own attributes of ConvTranspose, Conv, MaxPool, AveragePool and what ONNX Runtime computes; refusals left out.\n"]
    while len(out) < 190:
        case = onnx_transposed_convolution(random) if len(out) < 130 else onnx_window(random)
        if case is None:
            continue
        op, operands, attributes = case
        y = run_onnx(op, operands, attributes)
        if y is not None:
            out.append(line(op, attributes, operands, y, 1e-6 if op == "AveragePool" else None))
    return out


FILES = {"conv.cases": convolutions, "conv_transpose.cases": transposed_convolutions, "depth_space.cases": shuffles, "matmul.cases": matrix_products,
         "norm.cases": norms, "onnx_forms.txt": onnx_forms, "pad.cases": pads, "pool.cases": pools, "resize.cases": resizes}


def main():
    for name, make in FILES.items():
        (HERE / name).write_text("".join(make()))


if __name__ == "__main__":
    main()
