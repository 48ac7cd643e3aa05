"""Maker: grows one random model by drawing rules; what a tensor of it is known to be."""
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

    def __init__(self, seed: int, operators: set[str], opset: int = 28, rules=None, nodes: tuple[int, int] = (10, 24)) -> None:
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
LEFT_OUT = {"Scatter": "deprecated: ScatterElements has all of it", "Upsample": "models of opset 9 and before; Resize has all of it"}


def rule(function=None, *, weight: int = 1):
    if function is None:
        return lambda inner: rule(inner, weight=weight)
    RULES.extend([function] * weight)
    return function
