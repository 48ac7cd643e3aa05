"""Elementwise operators, comparisons and whole numbers."""
from __future__ import annotations

import numpy as np
from onnx import TensorProto

from .maker import BOOL, FLOAT, INT32, INT64, LIMIT, Maker, Refused, Shape, Tensor, rule


KEEPS = ["Relu", "Neg", "Abs", "Identity", "Dropout"]
JUMPS = {"Floor": None, "Ceil": None, "Round": None, "Sign": 1}
SMOOTH = {"Sigmoid": 1, "Tanh": 1, "Softsign": 1, "Erf": 1, "Sin": 1, "Cos": 1, "Atan": 2, "Asinh": None, "Softplus": None, "Elu": None, "Celu": None,
          "Selu": None, "HardSigmoid": 1, "HardSwish": None, "Mish": None, "Gelu": None}


@rule(weight=5)
def unary(m: Maker) -> None:
    kind = m.between(0, 5)
    if kind <= 1:
        x = m.data()
        m.keep(m.raw(m.one(*KEEPS), [x.name])[0], x.shape, x)
    elif kind == 2:
        x = m.data(exact=True)
        op = m.one(*JUMPS)
        m.keep(m.raw(op, [x.name])[0], x.shape, x, JUMPS[op])
    else:
        x = m.data()
        op = m.one(*SMOOTH)
        m.keep(m.raw(op, [x.name])[0], x.shape, x, SMOOTH[op] or x.bound * 1.1 + 1, exact=False)


@rule(weight=2)
def unary_with_domain(m: Maker) -> None:
    """Functions of a part of the line: the operand is brought there first."""
    x = m.data()
    small = m.raw("Tanh", [x.name])[0]
    positive = m.raw("Add", [m.raw("Abs", [x.name])[0], m.constant(np.float32(1.5))])[0]
    half = m.raw("Mul", [small, m.constant(np.float32(0.5))])[0]
    op, operand, bound = m.one(("Exp", small, 3), ("Sinh", small, 2), ("Cosh", small, 2), ("Tan", half, 1), ("Asin", half, 1), ("Acos", half, 3), ("Atanh", half, 1),
                               ("Log", positive, 10), ("Sqrt", positive, x.bound + 2), ("Reciprocal", positive, 1), ("Acosh", positive, 20))
    m.keep(m.raw(op, [operand])[0], x.shape, x, bound, exact=False)


@rule
def unary_with_numbers(m: Maker) -> None:
    x = m.data()
    op = m.one("LeakyRelu", "ThresholdedRelu", "Clip", "Shrink", "PRelu", "Swish")
    if op == "Clip":
        return void(m.keep(m.raw("Clip", [x.name, m.constant(np.float32(-2)), m.constant(np.float32(3))])[0], x.shape, x, 3))
    if op == "PRelu":
        return void(m.keep(m.raw("PRelu", [x.name, m.constant(np.float32(2))])[0], x.shape, x, x.bound * 2))
    if op == "Swish":
        return void(m.keep(m.raw("Swish", [x.name])[0], x.shape, x, exact=False))
    if op != "LeakyRelu" and not x.exact:
        raise Refused
    attributes = {"LeakyRelu": dict(alpha=2.0), "ThresholdedRelu": dict(alpha=1.0), "Shrink": dict(lambd=1.5, bias=1.0)}[op]
    m.keep(m.raw(op, [x.name], **attributes)[0], x.shape, x, x.bound * 2 + 1)


def void(_) -> None:
    return None


def broadcast(a: Shape, b: Shape) -> Shape:
    rank = max(len(a), len(b))
    a, b = ((1, 1),) * (rank - len(a)) + a, ((1, 1),) * (rank - len(b)) + b
    out = []
    for x, y in zip(a, b):
        if x != y and (1, 1) not in (x, y):
            raise Refused
        out.append(y if x == (1, 1) else x)
    return tuple(out)


@rule(weight=4)
def binary(m: Maker) -> None:
    x = m.data()
    if m.chance(2):
        shape = [1] * x.rank
        axis = m.between(0, x.rank - 1) if x.rank else 0
        if x.rank and x.fixed(axis):
            shape[axis] = x.shape[axis][0]
        y = Tensor(m.weights(*shape[m.between(0, axis) if x.rank else 0:], low=-3, high=3), x.shape, bound=3.0)
        shape = x.shape
    else:
        y = m.data()
        shape = broadcast(x.shape, y.shape)
    exact = x.exact and y.exact
    op = m.one("Add", "Sub", "Mul", "Min", "Max", "Sum", "Mean", "Div", "Pow")
    operands = [x.name, y.name]
    if op == "Mul" and x.bound * y.bound > LIMIT * 4:
        raise Refused
    bound = x.bound * y.bound if op == "Mul" else x.bound + y.bound
    if op == "Div":
        operands[1] = m.raw("Add", [m.raw("Abs", [y.name])[0], m.constant(np.float32(1))])[0]
        exact = False
    elif op == "Pow":
        operands = [x.name, m.constant(np.float32(2))]
        shape, exact, bound = x.shape, x.exact, x.bound**2
    elif op == "Mean":
        exact = False
    if m.chance(2):
        operands = operands if op in ("Sub", "Div", "Pow") else operands[::-1]
    m.keep(m.raw(op, operands)[0], shape, x, bound, exact)


@rule(weight=2)
def truths(m: Maker) -> None:
    """Comparisons, logic and the choice by them."""
    x = m.data(exact=True)
    y = m.pick(lambda t: t.dtype == FLOAT and t.exact and t.shape == x.shape)
    first = m.raw(m.one("Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal"), [x.name, y.name])[0]
    second = m.raw(m.one("IsNaN", "IsInf"), [x.name])[0]
    joined = m.raw(m.one("And", "Or", "Xor"), [first, m.raw("Not", [second])[0]])[0]
    if m.chance(3):
        return void(m.keep(joined, x.shape, x, 1, dtype=BOOL))
    z = m.data()
    shape = broadcast(x.shape, z.shape)
    m.keep(m.raw("Where", [joined, z.name, m.constant(np.float32(-1))])[0], shape, z)


@rule
def whole_numbers(m: Maker) -> None:
    x = m.data(exact=True)
    if x.bound > 2**15:
        raise Refused
    kind = m.one(INT64, INT32)
    dtype = np.int64 if kind == INT64 else np.int32
    name = m.raw("Cast", [x.name], to=kind)[0]
    op = m.one("Mod", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "Div", "Add", "Mul", "Max", "Abs", "BitShift", "Neg", "Sign", "CastLike")
    bound = x.bound * 8 + 8
    if op == "CastLike":
        return void(m.keep(m.raw("CastLike", [name, x.name])[0], x.shape, x))
    if op == "BitShift":
        name = m.raw("Cast", [m.raw("Abs", [name])[0]], to=TensorProto.UINT32)[0]
        name = m.raw("BitShift", [name, m.constant(np.uint32(2))], direction=m.one("LEFT", "RIGHT"))[0]
    elif op in ("BitwiseNot", "Abs", "Neg", "Sign"):
        name = m.raw(op, [name])[0]
    else:
        name = m.raw(op, [name, m.constant(dtype(m.between(1, 5)))])[0]
    m.keep(m.raw("Cast", [name], to=FLOAT)[0], x.shape, x, bound)
