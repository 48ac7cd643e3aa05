"""Random ONNX models: ten and more operators of the whole list, sizes known and dynamic, branches and loops.

A size is a pair: what it is in the first and in the second run of the model; a pair of different numbers is a dynamic size.
Each tensor carries what is known of its elements: the largest magnitude, and whether they are integers that every summation
order computes exactly. Operators that jump (Floor, ArgMax, comparisons) take exact tensors only, so that rounding never decides.
"""
from __future__ import annotations

import dataclasses
import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, INT32, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL
LIMIT = 2.0**18  # sums of products of exact tensors stay below 2^24
Size = tuple[int, int]
Shape = tuple[Size, ...]


@dataclasses.dataclass
class Tensor:
    name: str
    shape: Shape
    dtype: int = FLOAT
    bound: float = 4.0
    exact: bool = True
    born: bool = False  # a size comes from data: its shape here is not known

    @property
    def rank(self) -> int:
        return len(self.shape)

    def fixed(self, axis: int) -> bool:
        return self.shape[axis][0] == self.shape[axis][1]


class Refused(Exception):
    """The draw does not fit what is there; another one is made."""


def pair(size: int) -> Size:
    return (size, size)


def count(shape: Shape) -> int:
    return max(int(np.prod([size[run] for size in shape])) if shape else 1 for run in (0, 1))


class Maker:
    """Grows one model. Operators of RULES are drawn; a rule adds nodes or raises Refused."""

    def __init__(self, seed: int, operators: set[str], opset: int = 26, rules=None, nodes: tuple[int, int] = (10, 24)) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.operators = operators
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.tensors: list[Tensor] = []
        self.inputs: list[Tensor] = []
        self.names = 0
        self.used: set[str] = set()
        self.rules = rules if rules is not None else list(RULES)
        self.wished = self.random.randint(*nodes)
        self.prefix = ""

    # ---- drawing

    def one(self, *choices):
        return self.random.choice(choices)

    def between(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def chance(self, of: int) -> bool:
        return self.random.randrange(of) == 0

    def pick(self, test=lambda tensor: True) -> Tensor:
        fitting = [tensor for tensor in self.tensors if not tensor.born and test(tensor)]
        if not fitting:
            raise Refused
        return self.random.choice(fitting[-6:] if not self.chance(3) else fitting)

    def data(self, exact: bool | None = None, rank: tuple[int, ...] | None = None) -> Tensor:
        """A float tensor; exact=True: one whose elements are integers."""
        return self.pick(lambda t: t.dtype == FLOAT and (not exact or t.exact) and (rank is None or t.rank in rank))

    def image(self) -> Tensor:
        return self.pick(lambda t: t.dtype == FLOAT and t.rank in (3, 4, 5) and t.fixed(1) and 0 < t.shape[1][0] <= 12 and min(min(s) for s in t.shape[2:]) >= 2)

    # ---- adding

    def fresh(self) -> str:
        self.names += 1
        return f"{self.prefix}t{self.names}"

    def constant(self, array: np.ndarray) -> str:
        name = self.fresh()
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def integers(self, *values: int) -> str:
        if self.chance(4):
            return self.raw("Constant", [], value=numpy_helper.from_array(np.array(values, np.int64)))[0]
        return self.constant(np.array(values, np.int64))

    def weights(self, *shape: int, low: int = -2, high: int = 2) -> str:
        return self.constant(np.array([self.between(low, high) for _ in range(int(np.prod(shape)))], np.float32).reshape(shape))

    def raw(self, op: str, inputs: list[str], outputs: int = 1, domain: str = "", **attributes) -> list[str]:
        full = f"{domain}.{op}" if domain else op
        if full not in self.operators:
            raise Refused
        names = [self.fresh() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"{self.prefix}{op}_{len(self.nodes)}", domain=domain, **attributes))
        self.used.add(full)
        return names

    def keep(self, name: str, shape: Shape, of: Tensor, bound: float | None = None, exact: bool | None = None, dtype: int | None = None, born: bool = False) -> Tensor:
        made = Tensor(name, tuple(shape), of.dtype if dtype is None else dtype, of.bound if bound is None else bound, of.exact if exact is None else exact, born)
        if not born and (made.rank > 6 or count(made.shape) > 20000 or any(min(size) < 1 for size in made.shape)):
            raise Refused
        if made.bound > LIMIT:
            if made.dtype != FLOAT:
                raise Refused
            clipped = self.raw("Clip", [made.name, self.constant(np.float32(-4)), self.constant(np.float32(4))])[0]
            made = Tensor(clipped, made.shape, made.dtype, 4.0, made.exact, born)
        self.tensors.append(made)
        return made

    def model(self) -> onnx.ModelProto:
        self.start()
        failures = 0
        while len(self.nodes) < self.wished and failures < 400:
            failures += not self.grow()
        return self.finish()

    def grow(self) -> bool:
        before = len(self.nodes), len(self.initializers), len(self.tensors), set(self.used)
        try:
            self.random.choice(self.rules)(self)
            return True
        except Refused:
            del self.nodes[before[0]:], self.initializers[before[1]:], self.tensors[before[2]:]
            self.used = before[3]
            return False

    def start(self) -> None:
        rank = self.one(3, 4, 4, 4, 5)
        batch = self.one(pair(1), pair(2), (1, 3))
        shape = [batch, pair(self.between(1, 4))] + [self.one(pair(self.between(3, 6)), (self.between(3, 5), self.between(3, 7))) for _ in range(rank - 2)]
        for number in range(self.between(1, 2)):
            self.add_input(f"x{number}", tuple(shape))
        if self.chance(3):
            self.add_input("flag", (), BOOL)
        if self.chance(4):
            self.add_input("m", (pair(self.between(2, 4)), self.one(pair(3), (2, 5))))

    def add_input(self, name: str, shape: Shape, dtype: int = FLOAT) -> None:
        tensor = Tensor(name, shape, dtype, 1.0 if dtype == BOOL else 4.0)
        self.inputs.append(tensor)
        self.tensors.append(tensor)

    def finish(self) -> onnx.ModelProto:
        outputs = [self.tensors[-1]]
        consumed = {name for node in self.nodes for name in node.input}
        for tensor in self.tensors[:-1]:
            if tensor.name not in consumed and tensor not in self.inputs and len(outputs) < 4:
                outputs.append(tensor)
        if outputs[0] in self.inputs:
            self.nodes.append(helper.make_node("Identity", [outputs[0].name], ["same"], name="same"))
            outputs[0] = dataclasses.replace(outputs[0], name="same")
        self.outputs = outputs
        symbols: dict[Size, str] = {}
        values = []
        for tensor in self.inputs:
            sizes = [size[0] if size[0] == size[1] else symbols.setdefault(size, f"s{len(symbols)}") for size in tensor.shape]
            values.append(helper.make_tensor_value_info(tensor.name, tensor.dtype, sizes))
        infos = [onnx.ValueInfoProto(name=tensor.name) for tensor in outputs]
        graph = helper.make_graph(self.nodes, "random", values, infos, self.initializers)
        imports = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)

    def heading(self) -> str:
        tolerances = ",".join("0" if tensor.exact else "0.002" for tensor in self.outputs)
        runs = [",".join("x".join(str(size[run]) for size in tensor.shape) or "scalar" for tensor in self.inputs) for run in (0, 1)]
        return f"{self.seed} {tolerances} {' '.join(runs)}"


RULES = []
# Operators that no rule draws, with the reason.
_TRANSFORMER = "tests/python/test_operators.py compares it; a random model would need a whole layer around it"
LEFT_OUT = dict.fromkeys(["CausalConvWithState", "SwiGLU", "com.microsoft.Attention", "com.microsoft.EmbedLayerNormalization", "com.microsoft.GroupNorm",
                          "com.microsoft.MultiHeadAttention", "com.microsoft.SkipGroupNorm"], _TRANSFORMER)
LEFT_OUT |= {"Scatter": "deprecated: ScatterElements has all of it", "Upsample": "models of opset 9 and before; Resize has all of it"}


def rule(function=None, *, weight: int = 1):
    if function is None:
        return lambda inner: rule(inner, weight=weight)
    RULES.extend([function] * weight)
    return function


# ---- elementwise

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


# ---- convolutions, pools, norms

@rule(weight=4)
def convolution(m: Maker) -> None:
    x = m.image()
    transposed = m.chance(2) or m.chance(2)
    channels, spatial = x.shape[1][0], x.rank - 2
    group = channels if m.chance(4) else 1
    outputs = m.between(1, 3) * (group if not transposed or group > 1 else 1)
    kernel = [m.between(1, 3) for _ in range(spatial)]
    stride, dilation = [m.between(1, 3) for _ in range(spatial)], [m.between(1, 2) for _ in range(spatial)]
    pads = [m.between(0, 1) for _ in range(2 * spatial)]
    sizes = []
    adjust = [m.between(0, max(s, d) - 1) if m.chance(3) else 0 for s, d in zip(stride, dilation)]
    for axis in range(spatial):
        reach = dilation[axis] * (kernel[axis] - 1) + 1
        pad = pads[axis] + pads[axis + spatial]
        if transposed:
            sizes.append(tuple(stride[axis] * (n - 1) + adjust[axis] + reach - pad for n in x.shape[2 + axis]))
        else:
            if any(n + pad < reach for n in x.shape[2 + axis]):
                raise Refused
            sizes.append(tuple((n + pad - reach) // stride[axis] + 1 for n in x.shape[2 + axis]))
    taps = int(np.prod(kernel)) * (channels if transposed or group == 1 else 1)
    bound = x.bound * taps * 2 + 3
    if bound > LIMIT * 16:
        raise Refused
    shape = (channels, outputs // group, *kernel) if transposed else (outputs, channels // group, *kernel)
    attributes = dict(strides=stride, dilations=dilation, pads=pads, group=group) | (dict(output_padding=adjust) if transposed and any(adjust) else {})
    operands = [x.name, m.weights(*shape)] + ([m.weights(outputs, low=-3, high=3)] if m.chance(2) else [])
    if m.chance(6) and transposed:
        del attributes["pads"]
        name = m.raw("ConvTransposeWithDynamicPads", [*operands[:2], m.integers(*pads), *operands[2:]], domain="com.microsoft", **attributes)[0]
        return void(m.keep(name, (x.shape[0], pair(outputs), *sizes), x, bound))
    if m.chance(6) and not transposed:
        name = m.raw("FusedConv", operands, domain="com.microsoft", activation="Relu", **attributes)[0]
        return void(m.keep(name, (x.shape[0], pair(outputs), *sizes), x, bound))
    m.keep(m.raw("ConvTranspose" if transposed else "Conv", operands, **attributes)[0], (x.shape[0], pair(outputs), *sizes), x, bound)


@rule(weight=2)
def pool(m: Maker) -> None:
    x = m.image()
    spatial = x.rank - 2
    op = m.one("MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
    exact = x.exact and "Max" in op
    if op.startswith("Global"):
        bound = x.bound * (max(np.prod([s[r] for s in x.shape[2:]]) for r in (0, 1)) ** 0.5 if "Lp" in op else 1)
        return void(m.keep(m.raw(op, [x.name])[0], (*x.shape[:2], *[pair(1)] * spatial), x, float(bound), exact))
    stride = [m.between(1, 2) for _ in range(spatial)]
    sizes = [tuple((n - 2) // s + 1 for n in x.shape[2 + i]) for i, s in enumerate(stride)]
    m.keep(m.raw(op, [x.name], kernel_shape=[2] * spatial, strides=stride)[0], (*x.shape[:2], *sizes), x, x.bound * (3 if op == "LpPool" else 1), exact)


@rule(weight=2)
def norm(m: Maker) -> None:
    x = m.image()
    channels = x.shape[1][0]
    scale, bias = m.weights(channels), m.weights(channels)
    op = m.one("BatchNormalization", "InstanceNormalization", "GroupNormalization", "LayerNormalization", "RMSNormalization", "LRN", "MeanVarianceNormalization",
               "LpNormalization", "Softmax", "LogSoftmax", "Hardmax")
    if op == "BatchNormalization":
        name = m.raw(op, [x.name, scale, bias, m.weights(channels), m.weights(channels, low=1, high=3)], epsilon=0.5)[0]
        return void(m.keep(name, x.shape, x, x.bound * 3 + 9, exact=False))
    if op == "InstanceNormalization":
        name = m.raw(op, [x.name, scale, bias], epsilon=0.5)[0]
    elif op == "GroupNormalization":
        name = m.raw(op, [x.name, scale, bias], num_groups=m.one(1, channels), epsilon=0.5)[0]
    elif op in ("LayerNormalization", "RMSNormalization"):
        if not x.fixed(x.rank - 1):
            raise Refused
        extra = [m.weights(x.shape[-1][0])] if op[0] == "L" else []
        name = m.raw(op, [x.name, m.weights(x.shape[-1][0]), *extra], epsilon=0.5)[0]
    elif op == "LRN":
        name = m.raw(op, [x.name], size=m.one(1, 3))[0]
    elif op == "Hardmax":
        if not x.exact:
            raise Refused
        return void(m.keep(m.raw(op, [x.name], axis=m.between(0, x.rank - 1))[0], x.shape, x, 1))
    elif op in ("Softmax", "LogSoftmax"):
        bound = 1 if op == "Softmax" else x.bound * 2 + 10
        return void(m.keep(m.raw(op, [x.name], axis=m.between(-x.rank, x.rank - 1))[0], x.shape, x, bound, exact=False))
    else:
        # Where the sum is near 0 the quotient has no bound.
        shifted = m.raw("Add", [m.raw("Relu", [x.name])[0], m.weights(*[1] * x.rank, low=1, high=1)])[0]
        if op == "LpNormalization":
            name = m.raw(op, [shifted], axis=m.between(0, x.rank - 1), p=m.one(1, 2))[0]
        else:
            if x.rank != 4 or not x.fixed(3) or not all(x.fixed(axis) for axis in (0, 2)):
                raise Refused
            slope = m.constant(np.arange(count((x.shape[0], *x.shape[2:])), dtype=np.float32).reshape(x.shape[0][0], 1, x.shape[2][0], x.shape[3][0]))
            name = m.raw(op, [m.raw("Add", [m.raw("Tanh", [x.name])[0], slope])[0]])[0]
    m.keep(name, x.shape, x, 60, exact=False)


# ---- shapes and movement

@rule(weight=2)
def reshape(m: Maker) -> None:
    x = m.pick(lambda t: t.rank >= 2)
    axis = m.between(0, x.rank - 2)
    joined = tuple(a * b for a, b in zip(x.shape[axis], x.shape[axis + 1]))
    kind = m.between(0, 3)
    if kind == 0:
        sizes = [0] * axis + [-1] + [s[0] for s in x.shape[axis + 2:]]
        if any(not x.fixed(i) for i in range(axis + 2, x.rank)):
            raise Refused
        name, shape = m.raw("Reshape", [x.name, m.integers(*sizes)])[0], (*x.shape[:axis], joined, *x.shape[axis + 2:])
    elif kind == 1:
        name = m.raw("Flatten", [x.name], axis=axis + 1)[0]
        shape = tuple(tuple(int(np.prod([s[r] for s in part])) for r in (0, 1)) for part in (x.shape[:axis + 1], x.shape[axis + 1:]))
    elif kind == 2:
        name, shape = m.raw("Unsqueeze", [x.name, m.integers(axis)])[0], (*x.shape[:axis], pair(1), *x.shape[axis:])
    else:
        ones = [i for i, s in enumerate(x.shape) if s == (1, 1)]
        if not ones:
            raise Refused
        at = m.one(*ones)
        name, shape = m.raw("Squeeze", [x.name, m.integers(at)])[0], (*x.shape[:at], *x.shape[at + 1:])
    m.keep(name, shape, x)


@rule
def reshape_by_shape(m: Maker) -> None:
    """The clutter of exporters: Shape, Gather, Concat, Reshape and back."""
    x = m.pick(lambda t: t.rank >= 3)
    sizes = m.raw("Shape", [x.name])[0]
    first = m.raw("Gather", [sizes, m.integers(0)])[0]
    flat = m.raw("Reshape", [x.name, m.raw("Concat", [first, m.integers(-1)], axis=0)[0]])[0]
    rest = tuple(int(np.prod([s[r] for s in x.shape[1:]])) for r in (0, 1))
    if m.chance(2):
        m.keep(m.raw("Reshape", [flat, sizes])[0], x.shape, x)
    else:
        m.keep(flat, (x.shape[0], rest), x)
    if m.chance(3):
        whole = m.raw("Cast", [m.raw("Size", [x.name])[0]], to=FLOAT)[0]
        m.keep(whole, (), x, count(x.shape), True, FLOAT)


@rule(weight=2)
def transpose(m: Maker) -> None:
    x = m.pick(lambda t: t.rank >= 2)
    order = list(range(x.rank))
    m.random.shuffle(order)
    m.keep(m.raw("Transpose", [x.name], perm=order)[0], tuple(x.shape[i] for i in order), x)


@rule
def grow_shape(m: Maker) -> None:
    x = m.data()
    if m.chance(2):
        repeats = [m.between(1, 2) for _ in range(x.rank)]
        if not repeats:
            raise Refused
        return void(m.keep(m.raw("Tile", [x.name, m.integers(*repeats)])[0], tuple((a * r, b * r) for (a, b), r in zip(x.shape, repeats)), x))
    target = [m.between(1, 3)] + [1] * x.rank
    m.keep(m.raw("Expand", [x.name, m.integers(*target)])[0], (pair(target[0]), *x.shape), x)


@rule(weight=2)
def cut(m: Maker) -> None:
    x = m.pick(lambda t: t.rank >= 1 and t.dtype in (FLOAT, BOOL))
    axis = m.between(0, x.rank - 1)
    size = x.shape[axis]
    if min(size) < 2:
        raise Refused
    kind = m.between(0, 3)
    rest = lambda new: (*x.shape[:axis], new, *x.shape[axis + 1:])
    if kind == 0:
        name = m.raw("Slice", [x.name, m.integers(1), m.integers(2**62), m.integers(axis)])[0]
        m.keep(name, rest((size[0] - 1, size[1] - 1)), x)
    elif kind == 1:
        step = m.between(1, 2)
        name = m.raw("Slice", [x.name, m.integers(-1), m.integers(-2**62), m.integers(axis), m.integers(-step)])[0]
        m.keep(name, rest(((size[0] + step - 1) // step, (size[1] + step - 1) // step)), x)
    elif kind == 2:
        if not x.fixed(axis):
            raise Refused
        names = m.raw("Split", [x.name, m.integers(1, size[0] - 1)], 2, axis=axis)
        m.keep(names[0], rest(pair(1)), x)
        m.keep(names[1], rest(pair(size[0] - 1)), x)
    else:
        name = m.raw("Slice", [x.name, m.integers(0), m.integers(-1), m.integers(axis)])[0]
        m.keep(name, rest((size[0] - 1, size[1] - 1)), x)


@rule(weight=2)
def concat(m: Maker) -> None:
    x = m.data()
    if not x.rank:
        raise Refused
    axis = m.between(0, x.rank - 1)
    alike = lambda t: t.dtype == FLOAT and t.rank == x.rank and all(a == b for i, (a, b) in enumerate(zip(t.shape, x.shape)) if i != axis)
    others = [m.pick(alike) for _ in range(m.between(1, 2))]
    size = tuple(sum(t.shape[axis][r] for t in (x, *others)) for r in (0, 1))
    shape = (*x.shape[:axis], size, *x.shape[axis + 1:])
    m.keep(m.raw("Concat", [t.name for t in (x, *others)], axis=axis)[0], shape, x, max(t.bound for t in (x, *others)), all(t.exact for t in (x, *others)))


@rule
def sequence(m: Maker) -> None:
    """A list that is built, changed and put together again."""
    x = m.data()
    if not x.rank:
        raise Refused
    axis = m.between(0, x.rank - 1)
    alike = lambda t: t.dtype == FLOAT and t.rank == x.rank and all(a == b for i, (a, b) in enumerate(zip(t.shape, x.shape)) if i != axis)
    y, z = m.pick(alike), m.pick(alike)
    held = m.raw("SequenceInsert", [m.raw("SequenceConstruct", [x.name, y.name])[0], z.name, m.constant(np.array(m.between(-2, 2)))])[0]
    kept = (x, y, z)
    if m.chance(2):
        held = m.raw("SequenceInsert", [m.raw("SequenceErase", [held])[0], x.name])[0]
        name = m.raw("SequenceAt", [held, m.constant(np.array(-1))])[0]
        m.keep(name, x.shape, x)
        return
    size = tuple(sum(t.shape[axis][r] for t in kept) for r in (0, 1))
    m.keep(m.raw("ConcatFromSequence", [held], axis=axis)[0], (*x.shape[:axis], size, *x.shape[axis + 1:]), x, max(t.bound for t in kept), all(t.exact for t in kept))


@rule
def pad(m: Maker) -> None:
    x = m.image()
    pads = [0, 0] + [m.between(0, 1) for _ in range(x.rank - 2)] + [0, 0] + [m.between(-1, 1) for _ in range(x.rank - 2)]
    mode = m.one("constant", "constant", "reflect", "edge", "wrap")
    if mode != "constant":
        pads = [max(p, 0) for p in pads]
    operands = [x.name, m.integers(*pads)] + ([m.constant(np.float32(m.between(0, 2)))] if mode == "constant" and m.chance(2) else [])
    m.keep(m.raw("Pad", operands, mode=mode)[0], tuple((a + pads[i] + pads[i + x.rank], b + pads[i] + pads[i + x.rank]) for i, (a, b) in enumerate(x.shape)), x, x.bound + 2)


@rule(weight=2)
def gather(m: Maker) -> None:
    x = m.data()
    if not x.rank:
        raise Refused
    axis = m.between(0, x.rank - 1)
    low = min(x.shape[axis])
    kind = m.between(0, 2)
    if kind == 0:
        picks = [m.between(-low, low - 1) for _ in range(m.between(1, 4))]
        name = m.raw("Gather", [x.name, m.integers(*picks)], axis=axis)[0]
        return void(m.keep(name, (*x.shape[:axis], pair(len(picks)), *x.shape[axis + 1:]), x))
    if any(not x.fixed(i) for i in range(x.rank)) or count(x.shape) > 500:
        raise Refused
    sizes = [s[0] for s in x.shape]
    if kind == 1:
        sizes[axis] = m.between(1, 3)
        picks = np.array([m.between(-low, low - 1) for _ in range(int(np.prod(sizes)))], np.int64).reshape(sizes)
        name = m.raw("GatherElements", [x.name, m.constant(picks)], axis=axis)[0]
        return void(m.keep(name, tuple(pair(s) for s in sizes), x))
    depth = m.between(1, x.rank)
    picks = np.array([[m.between(-s, s - 1) for s in sizes[:depth]] for _ in range(3)], np.int64)
    m.keep(m.raw("GatherND", [x.name, m.constant(picks)])[0], (pair(3), *x.shape[depth:]), x)


@rule(weight=2)
def scatter(m: Maker) -> None:
    x = m.data()
    if not x.rank or x.rank > 4:
        raise Refused
    low = min(x.shape[0])
    if m.chance(2):
        rows = m.random.sample(range(low), min(low, 2))
        if any(not x.fixed(i) for i in range(1, x.rank)):
            raise Refused
        updates = m.weights(len(rows), *[s[0] for s in x.shape[1:]])
        reduction = m.one("none", "add", "max", "min")
        name = m.raw("ScatterND", [x.name, m.constant(np.array(rows, np.int64)[:, None]), updates], reduction=reduction)[0]
        return void(m.keep(name, x.shape, x, x.bound + 2))
    axis = m.between(0, x.rank - 1)
    shape = [1] * x.rank
    picks = m.constant(np.full(shape, m.between(0, min(x.shape[axis]) - 1), np.int64))
    m.keep(m.raw("ScatterElements", [x.name, picks, m.weights(*shape)], axis=axis, reduction=m.one("none", "add", "mul"))[0], x.shape, x, x.bound * 2 + 2)


@rule
def depth_and_space(m: Maker) -> None:
    x = m.image()
    if x.rank != 4:
        raise Refused
    n, c, h, w = x.shape
    if c[0] % 4 == 0 and m.chance(2):
        name = m.raw("DepthToSpace", [x.name], blocksize=2, mode=m.one("DCR", "CRD"))[0]
        return void(m.keep(name, (n, pair(c[0] // 4), (h[0] * 2, h[1] * 2), (w[0] * 2, w[1] * 2)), x))
    if any(s % 2 for s in (*h, *w)):
        raise Refused
    m.keep(m.raw("SpaceToDepth", [x.name], blocksize=2)[0], (n, pair(c[0] * 4), (h[0] // 2, h[1] // 2), (w[0] // 2, w[1] // 2)), x)


@rule
def resize(m: Maker) -> None:
    x = m.image()
    spatial = x.rank - 2
    mode = m.one("nearest", "linear", "cubic") if spatial == 2 else m.one("nearest", "linear")
    where = m.one("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    attributes = dict(nearest_mode="floor") if mode == "nearest" else {}
    if mode == "nearest":
        where = "asymmetric"
    if where == "align_corners" and min(min(s) for s in x.shape[2:]) < 2:
        raise Refused
    scale = m.constant(np.array([1, 1] + [2] * spatial, np.float32))
    name = m.raw("Resize", [x.name, "", scale], mode=mode, coordinate_transformation_mode=where, **attributes)[0]
    m.keep(name, (*x.shape[:2], *((a * 2, b * 2) for a, b in x.shape[2:])), x, x.bound * 2, x.exact and mode == "nearest")


@rule
def triangle(m: Maker) -> None:
    x = m.data()
    if x.rank < 2:
        raise Refused
    m.keep(m.raw("Trilu", [x.name, m.constant(np.int64(m.between(-1, 1)))], upper=m.between(0, 1))[0], x.shape, x)


@rule
def one_hot(m: Maker) -> None:
    x = m.data(exact=True)
    if x.bound > 100 or x.rank > 4:
        raise Refused
    indices = m.raw("Cast", [x.name], to=INT64)[0]
    m.keep(m.raw("OneHot", [indices, m.constant(np.int64(5)), m.constant(np.array([0, 1], np.float32))], axis=-1)[0], (*x.shape, pair(5)), x, 1)


@rule
def made_from_nothing(m: Maker) -> None:
    x = m.pick(lambda t: t.rank >= 1)
    sizes = m.raw("Shape", [x.name])[0]
    if m.chance(3) and x.rank == 2:
        return void(m.keep(m.raw("EyeLike", [x.name], dtype=FLOAT)[0], x.shape, x, 1, True, FLOAT))
    if m.chance(2):
        value = helper.make_tensor("v", FLOAT, [1], [float(m.between(-2, 2))])
        return void(m.keep(m.raw("ConstantOfShape", [sizes], value=value)[0], x.shape, x, 2, True, FLOAT))
    length = m.raw("Gather", [sizes, m.constant(np.int64(0))])[0]
    steps = m.raw("Range", [m.constant(np.int64(0)), length, m.constant(np.int64(1))])[0]
    m.keep(m.raw("Cast", [steps], to=FLOAT)[0], (x.shape[0],), x, max(x.shape[0]), True, FLOAT)


# ---- reductions, products, recurrences

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


# ---- signals

@rule
def window(m: Maker) -> None:
    op = m.one("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix")
    x = m.data()
    if op == "MelWeightMatrix":
        operands = [m.constant(np.int64(4)), m.constant(np.int64(16)), m.constant(np.int64(8000)), m.constant(np.float32(100)), m.constant(np.float32(3000))]
        return void(m.keep(m.raw(op, operands)[0], (pair(9), pair(4)), x, 1, False))
    size = m.between(2, 9)
    m.keep(m.raw(op, [m.constant(np.int64(size))], periodic=m.between(0, 1))[0], (pair(size),), x, 1, False)


@rule
def spectrum(m: Maker) -> None:
    x = m.data()
    if x.rank < 2 or x.rank > 4 or x.bound > 1000 or max(x.shape[1]) > 40:
        raise Refused
    signal = m.raw("Unsqueeze", [x.name, m.integers(-1)])[0]
    if m.chance(2):
        name = m.raw("DFT", [signal, "", m.constant(np.int64(1))], inverse=m.between(0, 1))[0]
        return void(m.keep(name, (*x.shape, pair(2)), x, x.bound * max(x.shape[1]), exact=False))
    if x.rank != 2 or min(x.shape[1]) < 4:
        raise Refused
    frames = tuple((n - 4) // 2 + 1 for n in x.shape[1])
    name = m.raw("STFT", [signal, m.constant(np.int64(2)), m.constant(np.ones(4, np.float32))])[0]
    m.keep(name, (x.shape[0], frames, pair(3), pair(2)), x, x.bound * 4, exact=False)


@rule
def rotation(m: Maker) -> None:
    """Positions turned by angle; two in one domain, two in another."""
    x = m.data(rank=(4,))
    if not all(x.fixed(axis) for axis in range(4)) or x.shape[3][0] % 2 or x.bound > 1000:
        raise Refused
    length, half = x.shape[2][0], x.shape[3][0] // 2
    angles = np.arange(length * half).reshape(length, half) / 7
    tables = m.constant(np.cos(angles).astype(np.float32)), m.constant(np.sin(angles).astype(np.float32))
    places = m.constant(np.tile(np.arange(length), (x.shape[0][0], 1)))
    if m.chance(2):
        name = m.raw("RotaryEmbedding", [x.name, *tables, places], interleaved=m.between(0, 1))[0]
    else:
        name = m.raw("RotaryEmbedding", [x.name, places, *tables], domain="com.microsoft", interleaved=m.between(0, 1))[0]
    m.keep(name, x.shape, x, x.bound * 2, exact=False)


@rule
def warp(m: Maker) -> None:
    x = m.data(rank=(4,))
    if not all(x.fixed(axis) for axis in range(4)) or min(x.shape[2][0], x.shape[3][0]) < 2:
        raise Refused
    n, c, h, w = (s[0] for s in x.shape)
    if m.chance(2):
        theta = np.tile(np.array([[[0.75, 0.25, 0.1], [-0.25, 0.5, 0]]], np.float32), (n, 1, 1))
        grid = m.raw("AffineGrid", [m.constant(theta), m.integers(n, c, 3, 2)], align_corners=m.between(0, 1))[0]
        return void(m.keep(m.raw("GridSample", [x.name, grid])[0], (*x.shape[:2], pair(3), pair(2)), x, x.bound, exact=False))
    shift = m.constant(np.array([m.between(-4, 4) / 4 for _ in range(n * 8 * (h - 1) * (w - 1))], np.float32).reshape(n, 8, h - 1, w - 1))
    name = m.raw("DeformConv", [x.name, m.weights(2, c, 2, 2), shift], kernel_shape=[2, 2])[0]
    m.keep(name, (x.shape[0], pair(2), pair(h - 1), pair(w - 1)), x, x.bound * c * 8, exact=False)


@rule
def loss(m: Maker) -> None:
    x = m.data()
    if x.rank < 2 or not all(x.fixed(axis) for axis in range(x.rank)) or x.bound > 60:
        raise Refused
    sizes = [s[0] for s in x.shape]
    labels = np.array([m.between(0, sizes[1] - 1) for _ in range(int(np.prod([sizes[0], *sizes[2:]])))], np.int64).reshape(sizes[0], *sizes[2:])
    if m.chance(2):
        return void(m.keep(m.raw("SoftmaxCrossEntropyLoss", [x.name, m.constant(labels)], reduction=m.one("mean", "sum"))[0], (), x, x.bound * 3 * labels.size + 9, exact=False))
    name = m.raw("NegativeLogLikelihoodLoss", [x.name, m.constant(labels)], reduction="none")[0]
    m.keep(name, tuple(pair(s) for s in labels.shape), x)


@rule(weight=2)
def optimised_norms(m: Maker) -> None:
    """Norms, biases and gates as ONNX Runtime's optimiser and new exporters write them."""
    x = m.data(rank=(3,))
    if not x.fixed(2):
        raise Refused
    width = x.shape[2][0]
    one = lambda: m.weights(width)
    op = m.one("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "SimplifiedLayerNormalization", "BiasAdd", "BiasSplitGelu", "FusedGemm")
    domain = "" if op == "SimplifiedLayerNormalization" else "com.microsoft"
    if op == "SkipLayerNormalization":
        name = m.raw(op, [x.name, x.name, one(), one(), one()], domain=domain, epsilon=0.5)[0]
    elif op == "SkipSimplifiedLayerNormalization":
        name = m.raw(op, [x.name, x.name, one()], domain=domain, epsilon=0.5)[0]
    elif op == "SimplifiedLayerNormalization":
        name = m.raw(op, [x.name, one()], epsilon=0.5)[0]
    elif op == "BiasAdd":
        return void(m.keep(m.raw(op, [x.name, one(), x.name], domain=domain)[0], x.shape, x, x.bound * 2 + 2))
    elif op == "BiasSplitGelu":
        if width % 2:
            raise Refused
        return void(m.keep(m.raw(op, [x.name, one()], domain=domain)[0], (*x.shape[:2], pair(width // 2)), x, (x.bound + 2) ** 2, exact=False))
    else:
        flat = m.raw("Reshape", [x.name, m.integers(-1, width)])[0]
        rows = tuple(a * b for a, b in zip(x.shape[0], x.shape[1]))
        return void(m.keep(m.raw(op, [flat, m.weights(width, 3), m.weights(3)], domain=domain, activation="Relu")[0], (rows, pair(3)), x, x.bound * width * 2 + 2))
    m.keep(name, x.shape, x, 60, exact=False)


# ---- numbers of eight bits

@rule
def quantise(m: Maker) -> None:
    x = m.data(exact=True)
    scale, zero = m.constant(np.float32(m.one(1, 2, 4))), m.constant(m.one(np.uint8(7), np.int8(-3)))
    back = m.raw("DequantizeLinear", [m.raw("QuantizeLinear", [x.name, scale, zero])[0], scale, zero])[0]
    m.keep(back, x.shape, x, 1024)


@rule
def quantise_by_range(m: Maker) -> None:
    x = m.data(exact=True)
    names = m.raw("DynamicQuantizeLinear", [m.raw("Clip", [x.name, m.constant(np.float32(-100)), m.constant(np.float32(155))])[0]], 3)
    m.keep(m.raw("Cast", [names[2]], to=FLOAT)[0], (), x, 255)


@rule
def integer_products(m: Maker) -> None:
    x = m.data(exact=True)
    if x.rank < 2 or not x.fixed(x.rank - 1):
        raise Refused
    bytes_ = m.raw("Cast", [m.raw("Clip", [x.name, m.constant(np.float32(0)), m.constant(np.float32(15))])[0]], to=TensorProto.UINT8)[0]
    inner, outer = x.shape[-1][0], m.between(1, 4)
    small = lambda *shape: m.constant(np.array([m.between(-4, 4) for _ in range(int(np.prod(shape)))], np.int8).reshape(shape))
    if m.chance(2):
        name = m.raw("MatMulInteger", [bytes_, small(inner, outer), m.constant(np.uint8(3))])[0]
        return void(m.keep(m.raw("Cast", [name], to=FLOAT)[0], (*x.shape[:-1], pair(outer)), x, inner * 100))
    one, byte = m.constant(np.float32(1)), m.constant(np.uint8(2))
    name = m.raw("QLinearMatMul", [bytes_, one, byte, small(inner, outer), one, m.constant(np.int8(0)), m.constant(np.float32(2)), m.constant(np.int8(1))])[0]
    m.keep(m.raw("Cast", [name], to=FLOAT)[0], (*x.shape[:-1], pair(outer)), x, 128)


@rule
def integer_convolution(m: Maker) -> None:
    x = m.image()
    if not x.exact:
        raise Refused
    bytes_ = m.raw("Cast", [m.raw("Clip", [x.name, m.constant(np.float32(0)), m.constant(np.float32(15))])[0]], to=TensorProto.UINT8)[0]
    channels, outputs, spatial = x.shape[1][0], m.between(1, 3), x.rank - 2
    weights = m.constant(np.array([m.between(-4, 4) for _ in range(outputs * channels * 2**spatial)], np.int8).reshape(outputs, channels, *[2] * spatial))
    shape = (x.shape[0], pair(outputs), *((a - 1, b - 1) for a, b in x.shape[2:]))
    if m.chance(2):
        name = m.raw("ConvInteger", [bytes_, weights, m.constant(np.uint8(1))])[0]
        return void(m.keep(m.raw("Cast", [name], to=FLOAT)[0], shape, x, channels * 2**spatial * 64))
    one, four = m.constant(np.float32(1)), m.constant(np.float32(4))
    name = m.raw("QLinearConv", [bytes_, one, m.constant(np.uint8(1)), weights, one, m.constant(np.int8(0)), four, m.constant(np.uint8(9))])[0]
    m.keep(m.raw("Cast", [name], to=FLOAT)[0], shape, x, 256)


# ---- regions, places and noise

@rule
def regions(m: Maker) -> None:
    x = m.data(rank=(4,))
    if not x.fixed(1) or min(min(s) for s in x.shape[2:]) < 2:
        raise Refused
    boxes = m.constant(np.array([[0, 0, 3, 3], [1, 0, 2, 4], [0.5, 0.5, 2.5, 1.5]], np.float32))
    which = np.zeros(3, np.int64)
    if m.chance(2):
        name = m.raw("RoiAlign", [x.name, boxes, m.constant(which)], output_height=2, output_width=3, mode="avg", sampling_ratio=2)[0]
        return void(m.keep(name, (pair(3), x.shape[1], pair(2), pair(3)), x, exact=False))
    rois = m.constant(np.array([[0, 0, 0, 3, 3], [0, 1, 0, 2, 4]], np.float32))
    m.keep(m.raw("MaxRoiPool", [x.name, rois], pooled_shape=[2, 2])[0], (pair(2), x.shape[1], pair(2), pair(2)), x)


@rule
def suppression(m: Maker) -> None:
    """The boxes are of the model, the scores of the data: how many stay is born from them."""
    x = m.data(exact=True)
    flat = m.raw("Reshape", [x.name, m.integers(-1)])[0]
    scores = m.raw("Reshape", [m.raw("Gather", [flat, m.constant(np.zeros(4, np.int64))])[0], m.integers(1, 1, 4)])[0]
    scores = m.raw("Add", [scores, m.constant(np.arange(4, dtype=np.float32).reshape(1, 1, 4) / 8)])[0]
    boxes = m.constant(np.array([[[0, 0, 2, 2], [0, 0, 2, 1.9], [3, 3, 5, 5], [0, 3, 2, 5]]], np.float32))
    chosen = m.raw("NonMaxSuppression", [boxes, scores, m.constant(np.array([3], np.int64)), m.constant(np.float32([0.5])), m.constant(np.float32([-1]))])[0]
    m.keep(m.raw("ReduceSum", [m.raw("Cast", [chosen], to=FLOAT)[0]], keepdims=0)[0], (), x, 40)


@rule
def places(m: Maker) -> None:
    """A pool that says where its maxima were, and back to there."""
    x = m.image()
    if not x.exact or x.rank != 4 or any(n % 2 for s in x.shape[2:] for n in s):
        raise Refused
    value, place = m.raw("MaxPool", [x.name], 2, kernel_shape=[2, 2], strides=[2, 2])
    m.keep(m.raw("MaxUnpool", [value, place], kernel_shape=[2, 2], strides=[2, 2])[0], x.shape, x)


@rule
def noise(m: Maker) -> None:
    x = m.data()
    op = m.one("RandomNormalLike", "RandomUniformLike", "RandomNormal", "RandomUniform", "Bernoulli", "Multinomial")
    seed = float(m.between(0, 99))
    if op.endswith("Like"):
        return void(m.keep(m.raw(op, [x.name], seed=seed)[0], x.shape, x, 8, False))
    if op == "Bernoulli":
        chances = m.raw("Sigmoid", [m.raw("Floor", [m.data(exact=True).name])[0]])[0]
        like = [t for t in m.tensors if t.name == m.nodes[-2].input[0]][0]
        m.raw(op, [chances], seed=seed)
        return void(m.keep(m.raw("Mul", [like.name, m.constant(np.float32(1))])[0], like.shape, like))
    if op == "Multinomial":
        odds = m.constant(np.zeros((2, 3), np.float32))
        return void(m.keep(m.raw("Cast", [m.raw(op, [odds], sample_size=4, seed=seed)[0]], to=FLOAT)[0], (pair(2), pair(4)), x, 3, True))
    m.keep(m.raw(op, [], shape=[2, 3], seed=seed)[0], (pair(2), pair(3)), x, 8, False)


@rule
def move_about(m: Maker) -> None:
    x = m.data()
    op = m.one("CumProd", "TensorScatter", "ReverseSequence", "CenterCropPad", "Col2Im", "Det")
    if op == "CumProd":
        if not x.rank or max(x.shape[-1]) > 6 or x.bound > 4:
            raise Refused
        return void(m.keep(m.raw(op, [x.name, m.constant(np.int64(-1))])[0], x.shape, x, x.bound ** max(x.shape[-1])))
    if op == "ReverseSequence":
        if x.rank < 2 or not x.fixed(1):
            raise Refused
        lengths = m.constant(np.array([m.between(1, min(x.shape[0])) for _ in range(x.shape[1][0])], np.int64))
        return void(m.keep(m.raw(op, [x.name, lengths], time_axis=0, batch_axis=1)[0], x.shape, x))
    if op == "CenterCropPad":
        if not x.rank:
            raise Refused
        size = m.between(1, 6)
        return void(m.keep(m.raw(op, [x.name, m.integers(size)], axes=[x.rank - 1])[0], (*x.shape[:-1], pair(size)), x))
    if op == "Col2Im":
        columns = m.raw("Reshape", [m.weights(1, 8, 6), m.integers(1, 8, 6)])[0]
        return void(m.keep(m.raw(op, [columns, m.integers(3, 4), m.integers(2, 2)])[0], (pair(1), pair(2), pair(3), pair(4)), x, 16, True))
    if op == "Det":
        matrix = m.weights(2, 3, 3)
        return void(m.keep(m.raw(op, [matrix])[0], (pair(2),), x, 48, False))
    if x.rank != 4 or not all(x.fixed(i) for i in (0, 1, 3)) or min(x.shape[2]) < 2:
        raise Refused
    update = m.weights(x.shape[0][0], x.shape[1][0], 1, x.shape[3][0])
    at = m.constant(np.array([m.between(0, min(x.shape[2]) - 1) for _ in range(x.shape[0][0])], np.int64))
    m.keep(m.raw(op, [x.name, update, at])[0], x.shape, x, max(x.bound, 2))


# ---- sizes born from data

@rule
def born_sizes(m: Maker) -> None:
    x = m.data(exact=True)
    kind = m.between(0, 2)
    if kind == 0:
        if not x.rank:
            raise Refused
        name = m.raw("Cast", [m.raw("NonZero", [x.name])[0]], to=FLOAT)[0]
    elif kind == 1:
        flags = m.raw("Greater", [m.raw("Reshape", [x.name, m.integers(-1)])[0], m.constant(np.float32(0))])[0]
        name = m.raw("Compress", [x.name, flags])[0]
    else:
        name = m.raw("Unique", [x.name], sorted=1)[0]
    total = m.raw("ReduceSum", [name], keepdims=0)[0]
    m.keep(total, (), x, x.bound * count(x.shape) * 16, True)


# ---- control flow

def body(m: Maker, given: list[Tensor], nodes: int, wish: Shape | None, domain_rules=None) -> tuple[list[onnx.NodeProto], Tensor]:
    """Nodes over `given` that end in a float tensor, of the shape `wish` where there is one."""
    inner = Maker(m.random.getrandbits(32), m.operators, m.opset, SIMPLE)
    m.names += 1
    inner.prefix = f"{m.prefix}b{m.names}_"
    inner.tensors = list(given)
    for _ in range(20):
        if len(inner.nodes) >= nodes:
            break
        inner.grow()
    fitting = [t for t in inner.tensors if t.dtype == FLOAT and (wish is None or t.shape == wish) and t not in given]
    if not fitting:
        raise Refused
    m.initializers += inner.initializers
    m.used |= inner.used
    return inner.nodes, fitting[-1]


@rule(weight=2)
def branch(m: Maker) -> None:
    x = m.data()
    if m.chance(3):
        flag = m.constant(np.bool_(m.between(0, 1)))
    elif any(t.name == "flag" for t in m.inputs):
        flag = "flag"
    else:
        y = m.data(exact=True)
        flag = m.raw("Greater", [m.raw("ReduceSum", [y.name], keepdims=0)[0], m.constant(np.float32(0))])[0]
        if y.bound * count(y.shape) > 2**23:
            raise Refused
    graphs, ends = [], []
    for name in ("then", "else"):
        nodes, end = body(m, [x], m.between(1, 3), x.shape)
        graphs.append(helper.make_graph(nodes, name, [], [onnx.ValueInfoProto(name=end.name)]))
        ends.append(end)
    made = m.raw("If", [flag], then_branch=graphs[0], else_branch=graphs[1])[0]
    m.keep(made, x.shape, x, max(e.bound for e in ends), all(e.exact for e in ends))


@rule(weight=2)
def loop(m: Maker) -> None:
    """Carries a tensor, brought back below 4 after each trip, and stacks what it was."""
    x = m.data()
    trips = m.between(0, 3) if m.chance(4) else m.between(1, 3)
    m.names += 1
    carried = Tensor(f"c{m.names}", x.shape, bound=4.0, exact=x.exact)
    nodes, end = body(m, [carried, dataclasses.replace(x)], m.between(1, 3), x.shape)
    low, high = m.constant(np.float32(-4)), m.constant(np.float32(4))
    tag = f"l{m.names}_"
    nodes = [*nodes, helper.make_node("Clip", [end.name, low, high], [tag + "next"], name=tag + "clip"), helper.make_node("Identity", [carried.name], [tag + "row"], name=tag + "row"),
             helper.make_node("Identity", [tag + "c"], [tag + "again"], name=tag + "again")]
    scalar = lambda name, dtype: helper.make_tensor_value_info(name, dtype, [])
    graph = helper.make_graph(nodes, "body", [scalar(tag + "i", INT64), scalar(tag + "c", BOOL), onnx.ValueInfoProto(name=carried.name)],
                              [onnx.ValueInfoProto(name=n) for n in (tag + "again", tag + "next", tag + "row")])
    for value in graph.input[2:]:
        value.type.tensor_type.elem_type = FLOAT
    start = m.raw("Clip", [x.name, low, high])[0]
    made = m.raw("Loop", [m.constant(np.int64(trips)), m.one("", m.constant(np.bool_(True))), start], 2, body=graph)
    exact = x.exact and end.exact
    m.keep(made[0], x.shape, x, 4, exact)
    if trips:
        m.keep(made[1], (pair(trips), *x.shape), x, 4, exact)


@rule
def scan(m: Maker) -> None:
    x = m.data()
    if x.rank < 2:
        raise Refused
    m.names += 1
    tag = f"s{m.names}_"
    rows = tuple(x.shape[1:])
    state, row = Tensor(tag + "state", rows, bound=4.0, exact=x.exact), Tensor(tag + "row", rows, bound=x.bound, exact=x.exact)
    low, high = m.constant(np.float32(-4)), m.constant(np.float32(4))
    nodes = [helper.make_node("Add", [state.name, row.name], [tag + "sum"], name=tag + "add"), helper.make_node("Clip", [tag + "sum", low, high], [tag + "next"], name=tag + "clip"),
             helper.make_node("Neg", [tag + "next"], [tag + "out"], name=tag + "neg")]
    infos = [onnx.ValueInfoProto(name=t.name) for t in (state, row)]
    for value in infos:
        value.type.tensor_type.elem_type = FLOAT
    graph = helper.make_graph(nodes, "body", infos, [onnx.ValueInfoProto(name=n) for n in (tag + "next", tag + "out")])
    first = m.raw("Clip", [m.raw("Gather", [x.name, m.constant(np.int64(0))], axis=0)[0], low, high])[0]
    made = m.raw("Scan", [first, x.name], 2, body=graph, num_scan_inputs=1, scan_input_directions=[m.between(0, 1)])
    m.keep(made[0], rows, x, 4)
    m.keep(made[1], x.shape, x, 4)


SIMPLE = [unary, unary_with_numbers, binary, binary, convolution, truths, transpose, pad, reduce]
