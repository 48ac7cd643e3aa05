"""Writes elementwise.cases, movement.cases and reduce.cases beside this file: results that numpy and PyTorch give.

Run it with the project's Python environment: python tests/ops/data/make_element_cases.py. The seed is fixed; floats in double precision.
"""

import numpy as np
import torch
import torch.nn.functional as F
from make_cases import HERE, Random, as_double, line

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]

FUNCTIONS = {
    "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "reciprocal": torch.reciprocal, "floor": torch.floor, "ceil": torch.ceil,
    "round": torch.round, "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "asin": torch.asin, "acos": torch.acos,
    "atan": torch.atan, "sinh": torch.sinh, "cosh": torch.cosh, "tanh": torch.tanh, "asinh": torch.asinh, "acosh": torch.acosh,
    "atanh": torch.atanh, "erf": torch.erf, "abs": torch.abs, "neg": torch.neg, "sign": torch.sign, "relu": F.relu, "sigmoid": torch.sigmoid,
    "softplus": F.softplus, "softsign": F.softsign, "mish": F.mish, "silu": F.silu, "hard_swish": F.hardswish, "is_nan": torch.isnan,
    "is_inf": torch.isinf,
}  # fmt: skip
WITH_SETTINGS = [
    ("leaky_relu", dict(alpha=0.2), lambda x: F.leaky_relu(x, 0.2)),
    ("leaky_relu", {}, F.leaky_relu),
    ("elu", dict(alpha=1.5), lambda x: F.elu(x, 1.5)),
    ("elu", {}, F.elu),
    ("celu", dict(alpha=0.75), lambda x: F.celu(x, 0.75)),
    ("celu", {}, F.celu),
    ("selu", {}, F.selu),
    ("thresholded_relu", dict(alpha=0.5), lambda x: F.threshold(x, 0.5, 0.0)),
    ("hard_sigmoid", dict(alpha=1 / 6), F.hardsigmoid),
    ("gelu", {}, F.gelu),
    ("gelu", dict(approximate="tanh"), lambda x: F.gelu(x, approximate="tanh")),
    ("clip", dict(low=-1.0, high=1.5), lambda x: torch.clamp(x, -1, 1.5)),
    ("clip", dict(low=0.5), lambda x: torch.clamp(x, min=0.5)),
]
DOMAINS = {"log": (1, 90), "sqrt": (0, 90), "reciprocal": (1, 90), "acosh": (16, 90), "asin": (-16, 16), "acos": (-16, 16), "atanh": (-15, 15)}


def functions(random):
    out = ["# functions and activations against PyTorch in double precision\n"]
    for name, attributes, function in [(n, {}, f) for n, f in FUNCTIONS.items()] + WITH_SETTINGS:
        low, high = DOMAINS.get(name, (-90, 90))
        x = random.values([2, 9], low, high, "float64") / 16
        # PyTorch's SELU constants have more digits than ONNX's, which are ours.
        out.append(line(name, attributes, dict(x=x), function(torch.from_numpy(x)).numpy(), 1e-7 if name == "selu" else 1e-14))
        special = np.array([np.nan, np.inf, -np.inf, 0.0, 700.0, -700.0, 1e-300])
        with np.errstate(all="ignore"):
            y = function(torch.from_numpy(special)).numpy()
        if name not in ("selu", "sign", "mish", "gelu", "hard_swish", "silu", "clip", "thresholded_relu", "sinh", "cosh", "tan", "sin", "cos", "softplus", "exp"):
            out.append(line(name, attributes, dict(x=special), y, 1e-14))
    return out


def wrapped(function, x, y):
    with np.errstate(all="ignore"):
        return np.asarray(function(x, y)).astype(x.dtype)


def truncated_divide(x, y):
    magnitude = np.abs(x.astype(object)) // np.maximum(np.abs(y.astype(object)), 1)
    negative = (x < 0) != (y < 0)
    return np.where(y == 0, 0, np.where(negative, -magnitude, magnitude))


def power(x, y):
    return np.array([pow(int(a), int(b)) % 2**64 for a, b in np.broadcast(x, y)], dtype=object).reshape(np.broadcast(x, y).shape)


def to_dtype(values, dtype):
    """Two's complement wrap of exact integers."""
    bits = np.iinfo(dtype).bits
    flat = [int(v) % 2**bits for v in np.asarray(values, dtype=object).ravel()]
    return np.array(flat, dtype=f"uint{bits}").astype(dtype).reshape(np.shape(values))


def integer_arithmetic(random):
    out = ["# integers against exact Python integers, wrapped to the dtype\n"]
    for dtype in INTEGERS:
        low, high = (0, 250) if dtype[0] == "u" else (-125, 125)
        low, high = max(low, int(np.iinfo(dtype).min)), min(high, int(np.iinfo(dtype).max))
        x = random.values([3, 5], low, high, dtype)
        x[0, 0], x[0, 1] = np.iinfo(dtype).max, np.iinfo(dtype).min
        y = random.values([5], 0 if dtype[0] == "u" else -5, 9, dtype)
        y[0] = 3
        a, b = x.astype(object), y.astype(object)
        results = {"add": a + b, "sub": a - b, "mul": a * b, "div": truncated_divide(x, y), "min": np.minimum(a, b), "max": np.maximum(a, b),
                   "bitwise_and": a & b, "bitwise_or": a | b, "bitwise_xor": a ^ b}  # fmt: skip
        for name, result in results.items():
            out.append(line(name, {}, dict(x=x, y=y), to_dtype(result, dtype), name="z"))
        nonzero = np.where(y == 0, 7, y).astype(dtype)
        out.append(line("mod", {}, dict(x=x, y=nonzero), to_dtype(a % nonzero.astype(object), dtype), name="z"))
        with np.errstate(all="ignore"):
            out.append(line("mod", dict(fmod=True), dict(x=x, y=nonzero), np.fmod(x, nonzero), name="z"))
        exponent = random.values([5], 0, 9, dtype)
        out.append(line("pow", {}, dict(x=x, y=exponent), to_dtype(power(x, exponent), dtype), name="z"))
        shift = random.values([5], 0, 7, dtype)
        out.append(line("shift_left", {}, dict(x=x, y=shift), to_dtype(a * 2 ** shift.astype(object), dtype), name="z"))
        out.append(line("shift_right", {}, dict(x=x, y=shift), to_dtype(a // 2 ** shift.astype(object), dtype), name="z"))
        for name, function in (("equal", np.equal), ("less", np.less), ("less_equal", np.less_equal), ("greater", np.greater), ("greater_equal", np.greater_equal)):
            out.append(line(name, {}, dict(x=x, y=y), function(x, y), name="z"))
        for name, result in (("abs", np.abs(a)), ("neg", -a), ("sign", np.sign(a)), ("relu", np.maximum(a, 0)), ("bitwise_not", ~a)):
            out.append(line(name, {}, dict(x=x), to_dtype(result, dtype)))
        out.append(line("clip", dict(low=-2.5, high=77.0), dict(x=x), to_dtype(np.clip(a, -2, 77), dtype)))
    return out


def float_arithmetic(random):
    out = ["# floats against numpy and PyTorch\n"]
    for dtype in ("float64", "float32", "float16"):
        for a, b in (([2, 3, 4], [3, 1]), ([4], [2, 1, 1]), ([], [3]), ([2, 1, 3], [1, 4, 1]), ([0, 3], [1, 3])):
            x, y = random.values(a, dtype=dtype), random.values(b, dtype=dtype)
            for name, function in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("min", np.minimum), ("max", np.maximum), ("equal", np.equal),
                                   ("less", np.less), ("greater_equal", np.greater_equal)):  # fmt: skip
                out.append(line(name, {}, dict(x=x, y=y), function(x, y), name="z"))
            positive = np.abs(y) + np.ones_like(y)
            out.append(line("div", {}, dict(x=x, y=positive), (x / positive).astype(dtype), name="z"))
            out.append(line("mod", {}, dict(x=x, y=positive), np.mod(x, positive), name="z"))
            out.append(line("mod", {}, dict(x=x, y=-positive), np.mod(x, -positive), name="z"))
            out.append(line("mod", dict(fmod=True), dict(x=x, y=-positive), np.fmod(x, -positive), name="z"))
            out.append(line("prelu", {}, dict(x=x, y=y), np.where(x < 0, x * y, x).astype(dtype), name="z"))
    x = np.array([np.nan, 1.0, np.inf, -0.0, 2.0])
    y = np.array([1.0, np.nan, -np.inf, 0.0, 2.0])
    for name, function in (("min", np.minimum), ("max", np.maximum), ("equal", np.equal), ("less", np.less), ("less_equal", np.less_equal), ("pow", np.power)):
        out.append(line(name, {}, dict(x=x, y=y), function(x, y), name="z"))
    base, exponent = np.abs(random.values([4, 5], 1, 40, "float64")) / 8, random.values([5], -16, 16, "float64") / 8
    out.append(line("pow", {}, dict(x=base, y=exponent), base**exponent, 1e-14, name="z"))
    truth, other = random.values([3, 4], 0, 1, "bool"), random.values([4], 0, 1, "bool")
    for name, function in (("and", np.logical_and), ("or", np.logical_or), ("xor", np.logical_xor), ("equal", np.equal)):
        out.append(line(name, {}, dict(x=truth, y=other), function(truth, other), name="z"))
    out.append(line("not", {}, dict(x=truth), ~truth))
    for of_x, of_y in (("float32", "float16"), ("float16", "float32"), ("float32", "float64"), ("float64", "float16")):
        x, y = random.values([2, 3, 4], dtype=of_x), random.values([3, 1], dtype=of_y)
        out.append(line("add_mixed", {}, dict(x=x, y=y), (x.astype("float64") + y).astype(of_x), name="z"))
    return out


def elementwise():
    random = Random(31)
    return functions(random) + integer_arithmetic(random) + float_arithmetic(random)


def casts(random):
    out = ["# cast and where against numpy\n"]
    names = {"float32": "f32", "float64": "f64", "float16": "f16", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16", "int32": "i32", "uint32": "u32",
             "int64": "i64", "uint64": "u64"}  # fmt: skip

    def cast(x, to):
        operand = line("cast", dict(to="?"), dict(x=x), x.astype(to))
        return operand.replace('to="?"', f"to={names.get(to, to)}")

    for source in names:
        for to in names:
            signed_to_float = source[0] != "u"
            x = random.values([6], -100 if signed_to_float else 0, 100, source)
            if source.startswith("float") and to.startswith("uint"):
                x = np.abs(x)  # numpy wraps what we saturate
            if source.startswith("float") and not to.startswith("float"):
                x = x + np.array(0.75, dtype=source)
                x = np.abs(x) if to.startswith("uint") else x
            out.append(cast(x, to))
        out.append(cast(random.values([5], 0, 2, source), "bool"))
    for source in names:
        out.append(line("cast", dict(to="?"), dict(x=np.array([True, False])), np.array([1, 0], dtype=source)).replace('to="?"', f"to={names[source]}"))
    big = np.array([2**53 + 1, -(2**53) - 1, 2**24 + 1, 2**63 - 1, 33554435], dtype="int64")
    out += [cast(big, "float32"), cast(big, "float64"), cast(np.array([2**64 - 1, 2**63 + 1025], dtype="uint64"), "float32")]
    halves = np.array([65504, 65519, 65520, 6e-8, 2e-8, 1.00048828125, 1.00146484375, -0.0001], dtype="float64")
    with np.errstate(all="ignore"):
        out += [cast(halves, "float16"), cast(halves.astype("float32"), "float16")]
    for dtype in ("float32", "float16", "int64", "uint8", "bool"):
        x, y = random.values([2, 3], 0, 1, dtype), random.values([4, 1, 3], 0, 1, dtype)
        condition = random.values([2, 1], 0, 1, "bool")
        out.append(line("where", {}, dict(condition=condition, x=x, y=y), np.where(condition, x, y), name="z"))
    return out


def sliced(x, start, size, step):
    for axis in range(x.ndim):
        x = np.take(x, [start[axis] + i * step[axis] for i in range(size[axis])], axis=axis)
    return x


def movement():
    random = Random(32)
    out = casts(random) + ["# data movement against numpy\n"]
    for dtype in ("float32", "int64", "uint8", "bool", "float16"):
        for shape in ([2, 3, 4], [1, 5, 2, 3], [6], [2, 0, 3]):
            x = random.values(shape, 0, 1 if dtype == "bool" else 99, dtype)
            order = list(random.source.permutation(len(shape)))
            out.append(line("transpose", dict(order=[int(a) for a in order]), dict(x=x), x.transpose(order)))
            out.append(line("reshape", dict(shape=[x.size]), dict(x=x), x.reshape(-1)))
            out.append(line("reshape", dict(shape=shape[::-1]), dict(x=x), x.reshape(shape[::-1])))
            repeats = random.several(len(shape), 0 if random.between(0, 3) == 0 else 1, 3)
            out.append(line("tile", dict(repeats=repeats), dict(x=x), np.tile(x, repeats)))
            size = [random.between(0, n) for n in shape]
            step = [random.pick([1, -1]) if n else 1 for n in shape]
            start = [0 if d > 0 else n - 1 for d, n in zip(step, shape)]
            if 0 in size:
                start = [0 if d > 0 else max(n - 1, 0) for d, n in zip(step, shape)]
            out.append(line("slice", dict(start=start, size=size, step=step), dict(x=x), sliced(x, start, size, step)))
            axis = random.between(0, len(shape) - 1)
            others = [random.values(shape[:axis] + [random.between(0, 3)] + shape[axis + 1 :], 0, 1, dtype) for _ in range(2)]
            operands = dict(x=x, x1=others[0], x2=others[1])
            out.append(line("concat", dict(axis=axis), operands, np.concatenate(list(operands.values()), axis)))
            if shape[axis]:
                indices = random.values([2, 2], -shape[axis], shape[axis] - 1, "int64")
                out.append(line("gather", dict(axis=axis), dict(x=x, indices=indices), np.take(x, indices, axis)))
                picked = random.values(shape[:axis] + [4] + shape[axis + 1 :], 0, shape[axis] - 1, "int32")
                out.append(line("gather_elements", dict(axis=axis), dict(x=x, indices=picked), np.take_along_axis(x, picked.astype("int64"), axis)))
    for x_shape, new in (([3, 1], [2, 3, 4]), ([], [2, 2]), ([1, 5, 1], [4, 5, 2]), ([1], [0]), ([4], [4])):
        x = random.values(x_shape)
        out.append(line("expand", dict(shape=new), dict(x=x), np.broadcast_to(x, new)))
    x = random.values([3, 4, 5])
    tuples = random.values([2, 3, 2], -3, 2, "int64")
    out.append(line("gather_nd", {}, dict(x=x, indices=tuples), x[tuples[..., 0], tuples[..., 1]]))
    singles = random.values([3, 2, 1], 0, 3, "int64")
    out.append(line("gather_nd", dict(batch_dims=1), dict(x=x, indices=singles), np.stack([x[b][singles[b, :, 0]] for b in range(3)])))
    for start, count, step in ((3, 5, -2), (0, 0, 1), (-4, 7, 3)):
        out.append(line("range", dict(start=start, count=count, step=step), {}, np.array([start + i * step for i in range(count)], dtype="int64")))
    return out


FOLDS = {
    "reduce_sum": np.sum, "reduce_mean": np.mean, "reduce_max": np.max, "reduce_min": np.min, "reduce_prod": np.prod,
    "reduce_l1": lambda x, **k: np.sum(np.abs(x), **k), "reduce_l2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
    "reduce_log_sum": lambda x, **k: np.log(np.sum(x, **k)), "reduce_sum_square": lambda x, **k: np.sum(x * x, **k),
}  # fmt: skip


def reductions():
    random = Random(33)
    out = ["# reductions against numpy and PyTorch\n"]
    for shape in ([2, 3, 4], [5], [1, 3, 2, 2], [2, 530]):
        for name, fold in FOLDS.items():
            if shape[-1] == 530 and name == "reduce_prod":
                continue
            axes = sorted({random.between(0, len(shape) - 1) for _ in range(2)})
            keep = bool(random.between(0, 1))
            low = 1 if name == "reduce_log_sum" else -4
            x = random.values(shape, low, 4, "float64")
            out.append(line(name, dict(axes=axes, keep=keep), dict(x=x), fold(x, axis=tuple(axes), keepdims=keep), 1e-14))
            if name in ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_l1", "reduce_sum_square"):
                x = random.values(shape, -2, 2, "int32")
                out.append(line(name, dict(axes=axes, keep=keep), dict(x=x), fold(x, axis=tuple(axes), keepdims=keep).astype("int32")))
        x = random.values(shape, -40, 40, "float64") / 4
        out.append(line("reduce_log_sum_exp", dict(axes=[0]), dict(x=x), torch.logsumexp(as_double(x), 0, keepdim=True).numpy(), 1e-14))
        for name, function in (("arg_max", np.argmax), ("arg_min", np.argmin)):
            axis = random.between(0, len(shape) - 1)
            x = random.values(shape, -3, 3, random.pick(["float32", "int8", "int64", "float16"]))
            out.append(line(name, dict(axis=axis, keep=False), dict(x=x), np.asarray(function(x, axis)).astype("int64")))
            last = x.shape[axis] - 1 - np.asarray(function(np.flip(x, axis), axis)).astype("int64")
            out.append(line(name, dict(axis=axis, keep=False, last=True), dict(x=x), last))
    x = np.array([[1.0, np.nan, np.inf], [-np.inf, 2.0, 3.0]])
    for name in ("reduce_max", "reduce_min", "reduce_sum"):
        out.append(line(name, dict(axes=[1]), dict(x=x), FOLDS[name](x, axis=1, keepdims=True)))
    out.append(line("reduce_log_sum_exp", dict(axes=[1]), dict(x=x[1:]), torch.logsumexp(as_double(x[1:]), 1, keepdim=True).numpy(), 1e-14))
    for name in ("reduce_sum", "reduce_prod", "reduce_l1"):
        empty = np.zeros([2, 0])
        out.append(line(name, dict(axes=[1]), dict(x=empty), FOLDS[name](empty, axis=1, keepdims=True)))
    truth = random.values([3, 4], 0, 1, "bool")
    out.append(line("reduce_max", dict(axes=[1]), dict(x=truth), truth.any(1, keepdims=True)))
    out.append(line("reduce_min", dict(axes=[0]), dict(x=truth), truth.all(0, keepdims=True)))
    return out


def main():
    for name, make in {"elementwise": elementwise, "movement": movement, "reduce": reductions}.items():
        (HERE / f"{name}.cases").write_text("".join(make()))


if __name__ == "__main__":
    main()
