"""Writes *.cases beside this file: operators with integer-valued random operands and the results that PyTorch or ONNX give.

Run it with the project's Python environment: python tests/ops/data/make_cases.py. The seed is fixed; results in double precision.
"""

import pathlib

import numpy as np
import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).parent
NAMES = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "uint8": "u8", "int8": "i8"}


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
    while len(out) < 150:
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


FILES = {"conv": convolutions, "conv_transpose": transposed_convolutions, "matmul": matrix_products}


def main():
    for name, make in FILES.items():
        (HERE / f"{name}.cases").write_text("".join(make()))


if __name__ == "__main__":
    main()
