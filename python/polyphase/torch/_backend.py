"""torch.compile(net, backend="polyphase"): from the graphs that Dynamo finds to engines."""

from __future__ import annotations

import dataclasses
import operator
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.exc import RestartAnalysis
from torch.fx import GraphModule
from torch.utils._python_dispatch import _disable_current_modes

from .. import _native
from .._errors import ArgumentError, Error, UnsupportedError
from . import _converters, _rewrites
from ._partition import operator_name
from ._plan import Plan
from ._program import Program
from ._settings import Settings

_MOST_WEIGHT_SETS = 32  # of networks that share one graph, such as equal blocks with weights of their own
_MOST_BUFFER_CHANGES = 3


def backend(graph: GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, **others: Any) -> Callable[..., Any]:
    """The backend behind torch.compile(net, backend="polyphase", options={...}); PyTorch finds it by its entry point.

    What Polyphase takes of a graph runs in engines, the rest in PyTorch; polyphase.explain shows what goes where. Calls that need
    gradients, and networks in training mode, run in PyTorch altogether, with a warning.

    options:
        require_full: True makes any operator that is left to PyTorch an error.
        min_block_size: the fewest operators that are worth an engine; unset: 3, or one convolution or operator of a plugin.
        torch_executed_ops: overloads that PyTorch shall run, such as ["aten.relu.default"].
        cache: False keeps compiled engines off the disk ($POLYPHASE_CACHE_DIR, else ~/.cache/polyphase).
        precision: in what type convolutions may multiply, 'model', 'fp32' or 'auto', as for polyphase.compile.
        tune: True chooses kernels by what they take on this CPU with PyTorch's number of threads, as polyphase.compile does.
        timing_cache: the file that keeps what was measured; unset: timings.txt in the folder of the engines.
        plugins: paths of shared libraries with operators; overloads that they claim run in engines (docs/guides/plugins.md).

    Raises Error: invalid_argument (an option), unsupported (require_full).
    """
    return Captured(graph, Settings.of(options, others)).compile(example_inputs)


_warned: weakref.WeakSet[torch.Tensor] = weakref.WeakSet()


def _warn_once(key: torch.Tensor | None, text: str) -> None:
    """Once for each network, as far as its first weight tells."""
    if key is None or not any(other is key for other in _warned):
        if key is not None:
            _warned.add(key)
        warnings.warn(text, UserWarning, stacklevel=2)


def _tensors_of(graph: GraphModule, example_inputs: Sequence[Any]) -> list[torch.Tensor]:
    return [tensor for tensor in (*graph.parameters(), *graph.buffers(), *example_inputs) if isinstance(tensor, torch.Tensor)]


class Captured:
    """One graph of Dynamo's on its way through AOTAutograd, which takes writes in place and views apart."""

    def __init__(self, graph: GraphModule, settings: Settings) -> None:
        self.graph = graph
        self.settings = settings
        self.compiled: CompiledGraph | None = None
        lifted = len(list(graph.named_parameters(remove_duplicate=False))) + len(list(graph.named_buffers(remove_duplicate=False)))
        self._is_static = [True] * lifted
        for node in graph.graph.nodes:
            if node.op == "placeholder":
                self._is_static.append("_dynamo_static_input_type" in (node.meta.get("tensor_dict") or {}))
        self._took = False
        self._training = ""
        self._trained: torch.Tensor | None = None

    def compile(self, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        trained = [tensor for tensor in _tensors_of(self.graph, example_inputs) if tensor.requires_grad]
        self._trained = trained[0] if trained else None
        if torch.is_grad_enabled() and trained:
            self.run_in_pytorch(self.graph, "its call needs gradients",
                                "Call it under torch.no_grad() or torch.inference_mode(), or call net.requires_grad_(False).")
            return self.graph.forward
        lower = aot_autograd(fw_compiler=self._take, inference_compiler=self._take, decompositions=_converters.decompositions(self.settings.plugins.claimed),
                             keep_inference_input_mutations=False)
        try:
            with _converters.keep_composites(self.settings.plugins.claimed):
                function = lower(self.graph, example_inputs)
        except RestartAnalysis:
            raise  # Dynamo traces the function again, with what it has learnt: numbers that PyTorch cannot keep open become constants
        except Exception as error:  # noqa: BLE001: of what AOTAutograd cannot take it says so in many ways
            if self._took:
                raise
            words = str(error).strip().splitlines()
            self.run_in_pytorch(self.graph, f"PyTorch cannot take its graph apart ({words[0] if words else type(error).__name__})",
                                "Do not exchange the memory of weights in forward.")
            return self.graph.forward
        return self.graph.forward if self._training else function

    def make(self, plan: Plan) -> Callable[..., Any]:
        """What runs the graph: takes its arguments as a list."""
        self.compiled = CompiledGraph(plan)
        return self.compiled.boxed

    def run_in_pytorch(self, graph: GraphModule, why: str, advice: str) -> None:
        if self.settings.require_full:
            raise UnsupportedError(f"the network runs in PyTorch, because {why}.", "unsupported", hint=f"{advice}")
        _warn_once(self._trained if torch.is_grad_enabled() else None, f"polyphase: the network runs in PyTorch, because {why}. {advice}")

    def _take(self, graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        self._took = True
        _rewrites.tidy(graph)
        self._training = _training_mode(graph)
        if self._training:
            self.run_in_pytorch(graph, f"it is in training mode ({self._training})", "Call net.eval().")
            return graph.forward
        weights: set[int] = set()
        places = [node for node in graph.graph.nodes if node.op == "placeholder"]
        if len(places) == len(self._is_static):
            context = torch._guards.TracingContext.try_get()
            metadata = getattr(context, "fw_metadata", None)
            written = set(getattr(metadata, "mutated_inp_runtime_indices", ()))
            weights = {place for place, static in enumerate(self._is_static) if static and place not in written}
        return self.make(Plan(graph, weights, self.settings))


def _training_mode(graph: GraphModule) -> str:
    for node in graph.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload):
            name = operator_name(node)
            drops = name.startswith("aten.native_dropout.") and node.args[2] is not False
            if drops or name.startswith(("aten.bernoulli.", "aten.rrelu_with_noise")):
                return "a dropout is active"
            if name.startswith(("aten._native_batch_norm_legit", "aten.native_batch_norm", "aten.cudnn_batch_norm")) and "no_training" not in name:
                schema = [argument.name for argument in node.target._schema.arguments]
                if "running_mean" in schema and node.args[schema.index("training")] is True:
                    return "a batch normalisation takes the batch's statistics"
    return ""


class _Watched:
    """A weight as it was when an engine was made of it."""

    def __init__(self, place: int, tensor: torch.Tensor) -> None:
        self.place = place
        self.tensor = weakref.ref(tensor)
        self.address = tensor.data_ptr()
        # Tensors of inference mode do not count their changes: their numbers are compared.
        self.copy = tensor.clone() if tensor.is_inference() else None
        self.version = 0 if self.copy is not None else tensor._version

    def is_same(self, tensor: torch.Tensor) -> bool:
        if self.tensor() is not tensor or tensor.data_ptr() != self.address:
            return False
        if self.copy is not None:
            return torch.equal(self.copy, tensor)
        return tensor._version == self.version


@dataclasses.dataclass
class _Compiled:
    program: Program
    engine: _native.Engine
    refittable: bool = False  # once its weights have changed, for the next time


class _WeightSet:
    """The islands compiled for the weights of one call."""

    def __init__(self, watched: list[_Watched], engines: list[_Compiled]) -> None:
        self.islands = [_callable(one.program, one.engine) for one in engines]
        self.engines = engines
        self.watched = watched
        self._compared = [one for one in watched if one.copy is not None]
        self._fast = [(one.place, one.tensor, one.version, one.address) for one in watched if one.copy is None]

    def fits(self, arguments: Sequence[Any]) -> bool:
        for place, known, version, address in self._fast:
            tensor: torch.Tensor = arguments[place]
            if known() is not tensor or tensor._version != version or tensor.data_ptr() != address:
                return False
        return not self._compared or all(one.is_same(arguments[one.place]) for one in self._compared)

    def is_of(self, arguments: Sequence[Any]) -> bool:
        """It is of these very tensors, or of some that are gone."""
        return any(one.tensor() is None for one in self.watched) or all(one.tensor() is arguments[one.place] for one in self.watched)


class CompiledGraph:
    """What AOTAutograd calls: the graph with its islands, for the weights that come with the call."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._lock = threading.Lock()
        self._sets: list[_WeightSet] = []
        self._current: _WeightSet | None = None
        self._outer: Callable[..., Any] | None = None
        self._single: tuple[Callable[..., Any], bool] | None = None
        self._changes: dict[int, int] = {}
        self.boxed = self._make_boxed()
        if plan.settings.require_full:
            _demand_full(plan)

    def _make_boxed(self) -> Callable[..., Any]:
        def run(arguments: list[Any]) -> Any:
            current = self._current
            if current is None or not current.fits(arguments):
                current = self._find(arguments)
            if self._single is not None:
                pick, is_one = self._single
                found = current.islands[0](*pick(arguments))
                return (found,) if is_one else found
            return self._outer(current.islands, *arguments)  # type: ignore[misc]

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    def _find(self, arguments: Sequence[Any]) -> _WeightSet:
        with self._lock, _disable_current_modes(), torch.no_grad():
            for known in self._sets:
                if known.fits(arguments):
                    self._current = known
                    return known
            before = next((known for known in self._sets if known.is_of(arguments)), None)
            if before is not None:
                self._sets.remove(before)
                self._count_changes(before, arguments)
            made = self._build(arguments, before)
            self._sets = [*self._sets, made][-_MOST_WEIGHT_SETS:]
            self._current = made
            return made

    def _count_changes(self, before: _WeightSet, arguments: Sequence[Any]) -> None:
        """A buffer that changes again and again is no weight: from then on it comes in with each call."""
        often = set()
        for one in before.watched:
            if not one.is_same(arguments[one.place]) and not isinstance(arguments[one.place], torch.nn.Parameter):
                self._changes[one.place] = self._changes.get(one.place, 0) + 1
                if self._changes[one.place] >= _MOST_BUFFER_CHANGES:
                    often.add(one.place)
        if often:
            self.plan = Plan(self.plan.module, self.plan.weights - often, self.plan.settings)
            self._outer = self._single = None
            self._sets = []

    def _build(self, arguments: Sequence[Any], before: _WeightSet | None) -> _WeightSet:
        plan = self.plan
        if self._outer is None and self._single is None:
            compiled = [_Compiled(program, engine) for _, program, engine in plan.build(lambda program: plan.compile(program, arguments))]
            if plan.settings.require_full:
                _demand_full(plan)
            self._outer = plan.outer_graph([one.program for one in compiled])
            self._single = _single_island(plan, [one.program for one in compiled])
        else:
            compiled = self._renew(before, arguments)
        watched = {}
        for one in compiled:
            for place in self._places_of(one.program).values():
                watched[place] = _Watched(place, arguments[place])
        return _WeightSet(list(watched.values()), compiled)

    def _places_of(self, program: Program) -> dict[str, int]:
        return {name: self.plan.places[node] for name, node in program.weights.items() if node.op == "placeholder"}

    def _renew(self, before: _WeightSet | None, arguments: Sequence[Any]) -> list[_Compiled]:
        """Engines for other weights. `before`: of the same tensors with other elements; engines that are not concerned stay, and
        one whose weights change a second time takes the new ones without being compiled."""
        same = {one.place for one in before.watched if one.is_same(arguments[one.place])} if before is not None else set()
        out = []
        for one in (before or self._sets[-1]).engines:
            changed = {name: place for name, place in self._places_of(one.program).items() if place not in same}
            if changed and not (before is not None and one.refittable and _refit(one.engine, changed, arguments)):
                one = _Compiled(one.program, self.plan.compile(one.program, arguments, before is not None), before is not None)
            out.append(one)
        return out


def _refit(engine: _native.Engine, changed: Mapping[str, int], arguments: Sequence[Any]) -> bool:
    try:
        engine.refit({name: arguments[place] for name, place in changed.items()}, strict=False)
    except Error as error:
        if error.code in ("out_of_memory", "cancelled"):
            raise
        return False  # its passes have looked at the elements
    return True


def _demand_full(plan: Plan) -> None:
    if not plan.left_to_pytorch:
        return
    node = plan.left_to_pytorch[0]
    reason, advice = plan.refused[node]
    name, others = operator_name(node), len(plan.left_to_pytorch) - 1
    more = f" {others} other operators are left to it too." if others else ""
    raise UnsupportedError(f"require_full is set, but {name} runs in PyTorch: {reason}{more}", "unsupported", hint=f"{advice}", node=node.name)


def _single_island(plan: Plan, programs: list[Program]) -> tuple[Callable[..., Any], bool] | None:
    """Where one island is the whole graph: what picks its arguments, and whether it has one result."""
    if len(programs) != 1 or programs[0].carried:
        return None
    program = programs[0]
    results: Any = plan.module.graph.output_node().args[0]
    places = [plan.places.get(node) for node in program.inputs]
    if list(results) != program.outputs or None in places or not places:
        return None
    is_one = len(program.outputs) == 1
    if len(places) == 1:
        [place] = places
        return operator.itemgetter(slice(place, place + 1)), is_one  # a sequence of one, without a frame of Python
    return operator.itemgetter(*places), is_one


def _callable(program: Program, engine: _native.Engine) -> Callable[..., Any]:
    """The engine on as many threads as PyTorch uses, with the axes of its inputs and outputs in the order that the graph has them."""
    orders, back = program.orders, [None if order is None else [order.index(axis) for axis in range(len(order))] for order in program.output_orders]
    if program.carried:
        orders = [None, *orders]
    session = engine.session(torch.get_num_threads())

    def run(*arguments: torch.Tensor) -> Any:
        nonlocal session
        try:
            return session(*arguments)
        except ArgumentError:
            if session.is_here:
                raise
        session = engine.session(torch.get_num_threads())  # the threads of the one before stayed behind when its process was forked
        return session(*arguments)

    if not any(orders) and not any(back):
        return run

    def permuted(*arguments: torch.Tensor) -> Any:
        found = run(*[tensor if order is None else tensor.permute(order) for tensor, order in zip(arguments, orders)])
        if len(back) == 1:
            return found if back[0] is None else found.permute(back[0])
        return tuple(tensor if order is None else tensor.permute(order) for tensor, order in zip(found, back))

    return permuted
