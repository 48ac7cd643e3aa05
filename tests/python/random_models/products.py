"""Reductions, products, recurrences and attention."""
from __future__ import annotations

import numpy as np

from .maker import FLOAT, LIMIT, Maker, Refused, pair, rule
from .elementwise import void


@rule(weight=3)
def reduce(m: Maker) -> None:
    x = m.data()
    if not x.rank:
        raise Refused
    axes = sorted(m.random.sample(range(x.rank), m.between(1, x.rank)))
    length = max(int(np.prod([x.shape[a][r] for a in axes])) for r in (0, 1))
    op, bound, exact = m.one(("ReduceMax", x.bound, x.exact), ("ReduceMin", x.bound, x.exact), ("ReduceSum", x.bound * length, x.exact), ("ReduceMean", x.bound, False),
                             ("ReduceL1", x.bound * length, x.exact), ("ReduceL2", x.bound * length, False), ("ReduceSumSquare", x.bound**2 * length, x.exact),
                             ("ReduceLogSumExp", x.bound + 10, False), ("ReduceProd", x.bound**length if length < 8 else 1e30, False), ("ReduceLogSum", 20, False))
    if bound > LIMIT * 16 or (op == "ReduceLogSumExp" and x.bound > 60):
        raise Refused
    operand = m.raw("Add", [m.raw("Abs", [x.name])[0], m.constant(np.float32(1))])[0] if op == "ReduceLogSum" else x.name
    keep = m.between(0, 1)
    shape = tuple(pair(1) if i in axes else s for i, s in enumerate(x.shape) if keep or i not in axes)
    m.keep(m.raw(op, [operand, m.integers(*axes)], keepdims=keep)[0], shape, x, bound, exact)


@rule
def order(m: Maker) -> None:
    x = m.data(exact=True)
    if not x.rank:
        raise Refused
    axis = m.between(0, x.rank - 1)
    if m.chance(2):
        name = m.raw(m.one("ArgMax", "ArgMin"), [x.name], axis=axis, keepdims=1)[0]
        return void(m.keep(m.raw("Cast", [name], to=FLOAT)[0], (*x.shape[:axis], pair(1), *x.shape[axis + 1:]), x, max(x.shape[axis])))
    k = m.between(1, min(x.shape[axis]))
    names = m.raw("TopK", [x.name, m.integers(k)], 2, axis=axis, largest=m.between(0, 1))
    m.keep(names[0], (*x.shape[:axis], pair(k), *x.shape[axis + 1:]), x)


@rule
def running_sum(m: Maker) -> None:
    x = m.data()
    if not x.rank:
        raise Refused
    axis = m.between(0, x.rank - 1)
    attributes = dict(exclusive=m.between(0, 1), reverse=m.between(0, 1))
    m.keep(m.raw("CumSum", [x.name, m.constant(np.int64(axis))], **attributes)[0], x.shape, x, x.bound * max(x.shape[axis]))


@rule(weight=2)
def product(m: Maker) -> None:
    x = m.data()
    if x.rank < 2 or not x.fixed(x.rank - 1) or x.shape[-1][0] > 64:
        raise Refused
    inner, outer = x.shape[-1][0], m.between(1, 5)
    kind = m.between(0, 3)
    bound = x.bound * inner * 2 + 3
    shape = (*x.shape[:-1], pair(outer))
    if bound > LIMIT * 16:
        raise Refused
    if kind == 0 and x.rank == 2:
        name = m.raw("Gemm", [x.name, m.weights(outer, inner), m.weights(outer, low=-3, high=3)], transB=1)[0]
    elif kind == 1:
        letters = "abcdef"[:x.rank]
        name = m.raw("Einsum", [x.name, m.weights(inner, outer)], equation=f"{letters},{letters[-1]}z->{letters[:-1]}z")[0]
    elif kind == 2 and x.rank == 3:
        turned = m.raw("Transpose", [x.name], perm=[0, 2, 1])[0]
        bound, shape = x.bound**2 * inner, (x.shape[0], x.shape[1], x.shape[1])
        name = m.raw("MatMul", [x.name, turned])[0]
        if bound > LIMIT * 16:
            raise Refused
    else:
        name = m.raw("MatMul", [x.name, m.weights(inner, outer)])[0]
    m.keep(name, shape, x, bound)


@rule
def recurrence(m: Maker) -> None:
    x = m.data(rank=(3,))
    if not x.fixed(2) or x.shape[2][0] > 16:
        raise Refused
    op, gates = m.one(("LSTM", 4), ("GRU", 3), ("RNN", 1))
    hidden, directions = m.between(1, 4), m.between(1, 2)
    quarter = lambda *shape: m.constant(np.array([m.between(-4, 4) / 4 for _ in range(int(np.prod(shape)))], np.float32).reshape(shape))
    small = m.raw("Tanh", [x.name])[0]
    operands = [small, quarter(directions, gates * hidden, x.shape[2][0]), quarter(directions, gates * hidden, hidden)]
    names = m.raw(op, operands, 1, hidden_size=hidden, direction="bidirectional" if directions == 2 else m.one("forward", "reverse"))
    m.keep(names[0], (x.shape[0], pair(directions), x.shape[1], pair(hidden)), x, 1, exact=False)


@rule
def sample(m: Maker) -> None:
    x = m.image()
    if x.rank != 4:
        raise Refused
    grid = m.constant(np.array([m.between(-5, 5) / 4 for _ in range(2 * 3 * 2)], np.float32).reshape(1, 2, 3, 2))
    if x.shape[0] != (1, 1):
        raise Refused
    name = m.raw("GridSample", [x.name, grid], mode=m.one("linear", "cubic"), padding_mode=m.one("zeros", "border", "reflection"), align_corners=m.between(0, 1))[0]
    m.keep(name, (x.shape[0], x.shape[1], pair(2), pair(3)), x, x.bound * 3, exact=False)


@rule
def attention(m: Maker) -> None:
    x = m.data(rank=(4,))
    if not x.fixed(3):
        raise Refused
    small = m.raw("Tanh", [x.name])[0]
    m.keep(m.raw("Attention", [small, small, small], is_causal=m.between(0, 1), scale=0.5)[0], x.shape, x, 1, exact=False)


@rule
def attention_written_out(m: Maker) -> None:
    """Two products around a softmax, as exporters write attention: scales, masks and guards in several places."""
    x = m.data(rank=(3, 4))
    q = m.raw("Tanh", [x.name])[0]
    k = m.raw("Transpose", [q], perm=[*range(x.rank - 2), x.rank - 1, x.rank - 2])[0]
    scale = m.constant(np.float32(m.one(0.25, 0.5, 2)))
    where = m.one("q", "both", "scores", "nowhere")
    if where in ("q", "both"):
        q = m.raw("Mul", [q, scale])[0]
    if where == "both":
        k = m.raw("Mul", [scale, k])[0]
    scores = m.raw("MatMul", [q, k])[0]
    if where == "scores":
        scores = m.raw(m.one("Mul", "Div"), [scores, scale])[0]
    mask = m.one("none", "add", "select")
    if mask == "add":
        scores = m.raw("Add", [scores, m.constant(np.float32(m.between(-2, 2)))])[0]
    elif mask == "select":
        hides = m.raw("Greater", [scores, m.constant(np.float32(1e6))])[0]
        scores = m.raw("Where", [hides, m.constant(np.float32(-np.inf)), scores])[0]
    weights = m.raw("Softmax", [scores], axis=-1)[0]
    if m.chance(2):
        weights = m.raw("Where", [m.raw("IsNaN", [weights])[0], m.constant(np.float32(0)), weights])[0]
    m.keep(m.raw("MatMul", [weights, x.name])[0], x.shape, x, exact=False)


@rule
def optimised(m: Maker) -> None:
    """What ONNX Runtime's optimiser writes."""
    x = m.data()
    op = m.one("Gelu", "FastGelu", "QuickGelu", "FusedMatMul", "BiasGelu")
    if op == "FusedMatMul":
        if x.rank != 3 or not x.fixed(2):
            raise Refused
        return void(m.keep(m.raw(op, [x.name, x.name], domain="com.microsoft", transB=1, alpha=0.5)[0], (x.shape[0], x.shape[1], x.shape[1]), x, x.bound**2 * x.shape[2][0], exact=False))
    if op == "BiasGelu":
        if not x.rank or not x.fixed(x.rank - 1):
            raise Refused
        return void(m.keep(m.raw(op, [x.name, m.weights(x.shape[-1][0])], domain="com.microsoft")[0], x.shape, x, x.bound + 3, exact=False))
    m.keep(m.raw(op, [x.name], domain="com.microsoft")[0], x.shape, x, exact=False)


@rule
def optimised_attention(m: Maker) -> None:
    """Attention over tokens, its products inside or outside."""
    x = m.data(rank=(3,))
    if not x.fixed(2) or x.shape[2][0] > 12:
        raise Refused
    width = x.shape[2][0]
    heads = m.one(*[n for n in (1, 2, 3, 4) if width % n == 0])
    small = m.raw("Tanh", [x.name])[0]
    if m.chance(2):
        scale = {"scale": 0.5}
        if x.fixed(1) and m.chance(2):  # the scale follows from a width that the model tells
            small, scale = m.raw("Reshape", [small, m.integers(-1, x.shape[1][0], width)])[0], {}
        other = m.raw("Neg", [small])[0]
        name = m.raw("MultiHeadAttention", [m.one(small, other), small, m.one(small, other)], domain="com.microsoft", num_heads=heads, **scale)[0]
        return void(m.keep(name, x.shape, x, 1, exact=False))
    name = m.raw("Attention", [small, m.weights(width, 3 * width), m.weights(3 * width)], domain="com.microsoft", num_heads=heads, unidirectional=m.between(0, 1))[0]
    m.keep(name, x.shape, x, 2 * width + 2, exact=False)


@rule
def embedding(m: Maker) -> None:
    batch, length, width = m.between(1, 2), m.between(1, 5), m.between(2, 6)
    row = lambda count: m.constant(np.array([m.between(0, 3) for _ in range(count)], np.int32).reshape(batch, -1))
    tables = [m.weights(rows, width) for rows in (4, length + 1, 4)]
    operands = [row(batch * length), row(batch * length), *tables, m.weights(width), m.weights(width)]
    name = m.raw("EmbedLayerNormalization", operands, 2, domain="com.microsoft", epsilon=0.5)[0]
    m.keep(name, (pair(batch), pair(length), pair(width)), m.data(), 60, exact=False)
