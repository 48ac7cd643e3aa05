"""A graph of ATen operators, divided into islands, and the PyTorch graph that calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import sympy  # type: ignore[import-untyped]
import torch
from torch.fx import Graph, GraphModule, Node

from .. import _native
from .._errors import Error
from .._options import plain_options
from . import _cache, _converters
from ._partition import Island, Partition, is_getitem, is_size, operands, operator_name
from ._program import NotWritable, Program, archive, raw_bytes, result_names
from ._settings import Settings

_T = TypeVar("_T")


def refusal_of(node: Node, settings: Settings) -> tuple[str, str] | None:
    """Why a node cannot go to Polyphase as far as its kind tells, and what to do; None: the reader decides."""
    name = operator_name(node)
    if not isinstance(node.target, torch._ops.OpOverload):
        return f"{name} is no operator of ATen.", "Write that part without it, or let PyTorch run it."
    if name in settings.torch_executed_ops:
        return f"torch_executed_ops leaves {name} to PyTorch.", "Take it out of torch_executed_ops."
    taken = name in _converters.taken() or name in settings.plugins.claimed
    if not taken and torch.Tag.nondeterministic_seeded in node.target.tags:
        return "it draws random numbers of PyTorch's generator.", "Draw them outside of the network, and pass them in."
    if not taken:
        return (f"Polyphase has no converter for {name}.",
                f"Register one that writes it in operators of PyTorch: @polyphase.torch.converter(torch.ops.{name}).")
    for given in [*operands(node), node]:
        value = given.meta.get("val")
        for tensor in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(tensor, torch.Tensor) and (problem := _tensor_problem(tensor)):
                return problem
    return None


def _tensor_problem(tensor: torch.Tensor) -> tuple[str, str] | None:
    if tensor.device.type != "cpu":
        return f"it works on device '{tensor.device}'.", "Move the network and its inputs to the CPU."
    if tensor.layout != torch.strided:
        return f"a tensor has the layout {tensor.layout}.", "Make it dense: to_dense()."
    if tensor.is_quantized or tensor.dtype == torch.complex32:
        return f"a tensor has the type {tensor.dtype}.", "Write that part with numbers of float32."
    if any(torch.fx.experimental.symbolic_shapes.free_unbacked_symbols(size) for size in tensor.shape if isinstance(size, torch.SymInt)):
        return "a size follows from data.", "Give that part sizes that the inputs tell."
    return None


class Plan:
    """How one graph will run. `weights`: numbers of placeholders whose tensors are baked into the engines."""

    def __init__(self, module: GraphModule, weights: set[int], settings: Settings) -> None:
        self.module = module
        self.settings = settings
        self.places = {node: place for place, node in enumerate(node for node in module.graph.nodes if node.op == "placeholder")}
        self.weights = weights
        self.refused: dict[Node, tuple[str, str]] = {}
        self._free: set[Node] = set()
        for node in module.graph.nodes:
            if node.op == "call_function" and not is_getitem(node) and not is_size(node) and (problem := refusal_of(node, settings)):
                self.refused[node] = problem
        self._ranges: dict[sympy.Symbol, Any] = {}
        for node in module.graph.nodes:
            for value in node.meta.get("val") if isinstance(node.meta.get("val"), (list, tuple)) else [node.meta.get("val")]:
                for size in value.shape if isinstance(value, torch.Tensor) else [value]:
                    if isinstance(size, torch.SymInt):
                        environment: Any = size.node.shape_env
                        self._ranges = environment.var_to_range
        self.partition = self._divide()

    def is_weight(self, node: Node) -> bool:
        return node.op == "get_attr" or self.places.get(node, -1) in self.weights

    def _divide(self) -> Partition:
        partition = Partition(self.module.graph, self.is_weight, self.refused, self.settings.plugins.claimed)
        partition.divide(1 if self.settings.require_full and not self.settings.min_block_size else self.settings.min_block_size)
        self._free |= partition.free
        return partition

    @property
    def left_to_pytorch(self) -> list[Node]:
        return [node for node in self.refused if node not in self._free]

    def refuse(self, island: Island, error: Exception) -> None:
        """What was found when the island was read or compiled: the node that it names runs in PyTorch, or the whole island."""
        named = next((node for node in island.nodes if isinstance(error, Error) and error.node in {node.name, *result_names(node)}), None)
        reason, advice = (error.message, error.hint) if isinstance(error, Error) else (f"{error}.", "")
        for node in island.nodes if named is None else [named]:
            self.refused.setdefault(node, (reason, advice))
        self.partition = self._divide()

    def write(self, island: Island) -> Program:
        """Raises NotWritable, after the node that is the reason was refused."""
        program = Program(self._ranges)
        inside = set(island.nodes)
        inputs: list[Node] = []
        for node in island.nodes:
            for given in operands(node):
                if self.partition.owner(given) in inside or given in inputs or given.name in program.weights:
                    continue
                if self.is_weight(given):
                    program.add_weight(given)
                else:
                    inputs.append(given)
        # Axes that are one symbol come first: they say what the formulas of the others mean.
        inputs.sort(key=lambda node: sum(isinstance(size, torch.SymInt) and not size.node.expr.is_Symbol for size in node.meta["val"].shape))
        known: set[sympy.Symbol] = set()
        for given in inputs:
            program.add_input(given)
            known |= {size.node.expr for size in given.meta["val"].shape if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol}
        for node in island.nodes:
            try:
                program.add_node(node)
            except NotWritable as problem:
                self.refused[node] = (f"{problem}.", "Write that part with tensors and sizes.")
                self.partition = self._divide()
                raise
        for node in island.nodes:
            for result in self._results(node):
                if any(self.partition.owner(user) not in inside and not is_size(user) for user in result.users):
                    program.add_output(result)
        program.carry(known)
        return program

    def _results(self, node: Node) -> list[Node]:
        if not isinstance(node.meta.get("val"), (list, tuple)):
            return [node] if node not in self.partition._floats else []
        return [user for user in node.users if is_getitem(user)]

    def weights_of(self, program: Program, arguments: Sequence[Any]) -> dict[str, torch.Tensor]:
        out = {}
        for name, node in program.weights.items():
            out[name] = getattr(self.module, str(node.target)) if node.op == "get_attr" else arguments[self.places[node]]
        return out

    def compile(self, program: Program, arguments: Sequence[Any], refittable: bool = False) -> _native.Engine:
        """refittable: for weights that change, whose engines are not kept on disk."""
        weights = self.weights_of(program, arguments)
        text = program.json()
        options = plain_options(target="native", shapes=None, dims=None, tune_for=program.tune_for, without=(), refittable=refittable,
                                tune=self.settings.tune, tune_threads=torch.get_num_threads() if self.settings.tune else 0,
                                timing_cache=self.settings.timing_cache, precision=self.settings.precision, plugins=self.settings.plugins.paths)
        key = ""
        if self.settings.cache and not refittable:
            tuned = repr((options["tune_threads"], options["timing_cache"])).encode() if self.settings.tune else b""
            key = _cache.key_of([text.encode(), repr(sorted(program.tune_for.items())).encode(), tuned, self.settings.precision.encode(), self.settings.plugins.digest,
                                  *map(raw_bytes, weights.values())])
            if (found := _cache.find(key, options["plugins"])) is not None:
                return found
        engine = _native.compile_bytes(archive(text, weights), options, None)
        if key:
            _cache.store(key, engine)
        return engine

    def build(self, compile_island: Callable[[Program], _T]) -> list[tuple[Island, Program, _T]]:
        """Every island compiled; what turns out to be refused goes to PyTorch, and the rest is divided anew."""
        done: dict[tuple[Node, ...], tuple[Program, _T]] = {}
        while True:
            for island in self.partition.islands:
                if tuple(island.nodes) in done:
                    continue
                try:
                    program = self.write(island)
                except NotWritable:
                    break
                try:
                    done[tuple(island.nodes)] = program, compile_island(program)
                except Error as error:
                    if error.code in ("out_of_memory", "cancelled"):
                        raise
                    self.refuse(island, error)
                    break
            else:
                return [(island, *done[tuple(island.nodes)]) for island in self.partition.islands]

    def outer_graph(self, programs: Sequence[Program]) -> Callable[..., Any]:
        """The graph as a function of (callables of the islands, *arguments), with one call for each island."""
        return _Outer(self, programs).module.forward


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def _carrier(*sizes: int) -> torch.Tensor:
    return torch.empty((*sizes, 0), dtype=torch.uint8)


class _Outer:
    def __init__(self, plan: Plan, programs: Sequence[Program]) -> None:
        self._plan = plan
        self._graph = Graph()
        self._made: dict[Node, Node] = {}
        islands = self._graph.placeholder("islands")
        for node in plan.places:
            self._made[node] = self._graph.node_copy(node)
        numbers = {id(island): number for number, island in enumerate(plan.partition.islands)}
        for step in plan.partition.schedule():
            if isinstance(step, Island):
                number = numbers[id(step)]
                self._add_island(self._graph.call_function(_item, (islands, number)), programs[number])
            else:
                self._node(step)
        output = plan.module.graph.output_node()
        self._graph.output(torch.fx.map_arg(output.args[0], self._node))
        self.module = GraphModule(plan.module, self._graph)

    def _node(self, node: Node) -> Node:
        waiting = [node]
        while waiting:
            last = waiting[-1]
            missing = [given for given in last.all_input_nodes if given not in self._made]
            if last in self._made or not missing:
                waiting.pop()
                if last not in self._made:
                    self._made[last] = self._graph.node_copy(last, lambda given: self._made[given])
                    self._made[last].meta = {}
            else:
                waiting.extend(missing)
        return self._made[node]

    def _add_island(self, function: Node, program: Program) -> None:
        arguments = [self._node(node) for node in program.inputs]
        if program.carried:
            arguments.insert(0, self._graph.call_function(_carrier, tuple(self._size(symbol) for symbol in program.carried)))
        call = self._graph.call_function(_call, (function, *arguments))
        if len(program.outputs) == 1:
            self._made[program.outputs[0]] = call
            return
        for place, node in enumerate(program.outputs):
            self._made[node] = self._graph.call_function(_item, (call, place))

    def _size(self, symbol: sympy.Symbol) -> Node:
        for node in self._plan.places:
            value = node.meta.get("val")
            if isinstance(value, torch.SymInt) and value.node.expr == symbol:
                return self._made[node]
            if isinstance(value, torch.Tensor):
                for axis, size in enumerate(value.shape):
                    if isinstance(size, torch.SymInt) and size.node.expr == symbol:
                        return self._graph.call_function(torch.ops.aten.sym_size.int, (self._made[node], axis))
        raise NotWritable(f"size {symbol} belongs to no input")


def _item(values: Any, place: int) -> Any:
    return values[place]
