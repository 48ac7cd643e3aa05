"""polyphase.compat of a module: each distinct call of an ATen operator that torch.export finds in it, alone, against PyTorch.

The exported program is run by PyTorch, node by node; the first call of each configuration is exported by itself, compiled, and run on the
very tensors that reached it there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.fx import GraphModule, Interpreter, Node
from torch.utils import _pytree as pytree

from .. import _native
from .._errors import ArgumentError, Error, UnsupportedError
from . import _converters, _export
from ._judge import judge, quiet, tensors_of
from ._program import expression

_TRIES = 64  # values of a size that are tried, from the wished one on
_WISHES = ("least", "middle", "odd")
_GROWTH = 64  # an open size without an end is tested up to about so much above its least
_DTYPES = {torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64", torch.int32: "i32",
           torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool"}


def compat(model: Any, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None, dynamic_shapes: Any, settings: Mapping[str, Any],
           compile_one: Callable[[nn.Module, tuple[Any, ...], Any], Any], progress: Callable[[str, float], object] | None) -> dict[str, Any]:
    """The report of polyphase.Compatibility. `compile_one(module, args, dynamic_shapes)` makes the engines."""
    start = time.perf_counter()
    if isinstance(model, torch.export.ExportedProgram):
        program = model
        if args is None and kwargs is None:
            if program.example_inputs is None:
                raise ArgumentError("the program holds no example inputs.", hint="Give args, and kwargs where forward takes them by name.")
            args, kwargs = program.example_inputs
    else:
        program = _export.exported(model, args, kwargs, dynamic_shapes)
    runner = _Runner(program, tuple(args or ()), dict(kwargs or {}), settings, compile_one, progress)
    runner.run()
    name = type(model).__name__ if not isinstance(model, torch.export.ExportedProgram) else ""
    return {"model_name": name, "producer": f"pytorch {torch.__version__}", "reference": f"pytorch {torch.__version__}", "seed": settings["seed"],
            "constant_nodes": runner.constant_nodes, "rows": [row.plain() for row in runner.rows.values()], "notes": runner.notes,
            "seconds": time.perf_counter() - start}


class _Call(nn.Module):
    """One call of an operator with the tensors among its arguments as inputs, or as buffers where the network has them so."""

    def __init__(self, target: Any, leaves: Sequence[Any], spec: Any, constants: Sequence[int]) -> None:
        super().__init__()
        self.target, self.leaves, self.spec = target, list(leaves), spec
        self.places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self.constants = {place: f"constant_{place}" for place in constants}
        # Torch.export may not see a tensor or a module among plain attributes.
        for place, leaf in enumerate(leaves):
            if place in self.constants:
                self.register_buffer(self.constants[place], leaf)
            elif isinstance(leaf, nn.Module):
                self.add_module(f"module_{place}", leaf)
            if isinstance(leaf, (torch.Tensor, nn.Module)):
                self.leaves[place] = None
        self.modules_at = [place for place, leaf in enumerate(leaves) if isinstance(leaf, nn.Module)]
        schema = getattr(target, "_schema", None)
        self.writes = schema is not None and schema.is_mutable

    def call(self, *tensors: torch.Tensor) -> Any:
        """With every tensor given."""
        filled = list(self.leaves)
        for place, tensor in zip(self.places, tensors):
            filled[place] = tensor.clone() if self.writes else tensor
        for place in self.modules_at:
            filled[place] = getattr(self, f"module_{place}")
        given, named = pytree.tree_unflatten(filled, self.spec)
        return self.target(*given, **named)

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        given = iter(inputs)
        return tuple(tensors_of(self.call(*[getattr(self, self.constants[place]) if place in self.constants else next(given) for place in self.places])))


def layout_of(tensor: torch.Tensor) -> str:
    if tensor.is_contiguous():
        return "contiguous"
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if tensor.dim() in formats and tensor.is_contiguous(memory_format=formats[tensor.dim()]):
        return "channels_last"
    return "strided"


class _Row:
    """A configuration, and what its tests said."""

    def __init__(self, target: Any, node: Node, leaves: Sequence[Any], spec: Any, sizes: Sequence[list[str] | None], constants: Sequence[int],
                 attributes: str) -> None:
        self.target, self.attributes, self.spec = target, attributes, spec
        self.first_node, self.nodes = node.name, 0
        self.constants = list(constants)
        self.operands = [{"dtype": _DTYPES.get(leaf.dtype, str(leaf.dtype).removeprefix("torch.")), "sizes": sizes[place] or [str(size) for size in leaf.shape],
                          "layout": layout_of(leaf), "constant": place in self.constants} for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self.cases: list[dict[str, Any]] = []
        self.engine: Any = None
        self.module: _Call | None = None

    def plain(self) -> dict[str, Any]:
        order = ("wrong", "missing", "refused", "right", "not run")
        worst = min(self.cases, key=lambda case: order.index(case["outcome"]))
        reason = worst["reason"] if worst["outcome"] != "right" else ""
        return {"operation": str(self.target), "attributes": self.attributes, "operands": self.operands, "nodes": self.nodes, "first_node": self.first_node,
                "outcome": worst["outcome"], "reason": reason, "cases": self.cases}


class _Recorder(Interpreter):  # type: ignore[misc]
    """Runs a graph and shows every call of an operator before it is made."""

    def __init__(self, module: GraphModule, see: Callable[[Any, Node, Any, Any], None], constants: set[Node] | None = None) -> None:
        super().__init__(module, garbage_collect_values=True)
        self._see = see

    def run_node(self, n: Node) -> Any:
        if n.op == "call_function":
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            if isinstance(n.target, torch._ops.OpOverload):
                self._see(n.target, n, args, kwargs)
            elif isinstance(n.target, torch._ops.HigherOrderOperator):
                self._see(n.target, n, args, kwargs)
                self._look_inside(n.target, args)
        return super().run_node(n)

    def _look_inside(self, target: Any, args: Sequence[Any]) -> None:
        name = target.name()
        inner: Any = None
        given: Sequence[Any] = ()
        if name == "cond":
            inner, given = args[1] if bool(args[0]) else args[2], args[3]
        elif name == "while_loop":
            inner, given = args[1], [*args[2], *args[3]]
        elif name.startswith("wrap_with"):
            place = next((place for place, value in enumerate(args) if isinstance(value, GraphModule)), len(args))
            inner, given = (args[place] if place < len(args) else None), args[place + 1 :]
        if isinstance(inner, GraphModule):
            copies = [value.clone() if isinstance(value, torch.Tensor) else value for value in given]
            _Recorder(inner, self._see).run(*copies)


def _constant_nodes(module: GraphModule) -> set[Node]:
    """What follows from parameters and buffers alone."""
    found: set[Node] = set()
    for node in module.graph.nodes:
        if node.op == "get_attr" or (node.op == "call_function" and node.all_input_nodes and all(each in found for each in node.all_input_nodes)):
            found.add(node)
    return found


class _Runner:
    def __init__(self, program: torch.export.ExportedProgram, args: tuple[Any, ...], kwargs: dict[str, Any], settings: Mapping[str, Any],
                 compile_one: Callable[[nn.Module, tuple[Any, ...], Any], Any], progress: Callable[[str, float], object] | None) -> None:
        self.rows: dict[str, _Row] = {}
        self.notes: list[str] = []
        self.constant_nodes = 0
        self._program, self._settings, self._compile, self._progress = program, settings, compile_one, progress
        self._module: GraphModule = program.module()
        self._constants: dict[Any, set[Node]] = {}
        self._leaves, self._spec = pytree.tree_flatten((args, kwargs))
        self._sizes: dict[str, int] = {}
        self._names: set[str] = set()
        self._set, self._sets, self._seen, self._nodes = 0, 1, 0, 1

    def run(self) -> None:
        with quiet():
            sets = self._size_sets()
            self._sets = len(sets)
            self._nodes = max(1, sum(node.op == "call_function" for node in self._module.graph.nodes))
            for self._set, (self._sizes, leaves) in enumerate(sets):
                self._seen, counted = 0, set[str]()
                self._counted = counted
                args, kwargs = pytree.tree_unflatten(leaves, self._spec)
                _Recorder(self._module, self._see).run(*self._flat(args, kwargs))
        if self._settings["only"] and not self.rows:
            known = ", ".join(sorted(self._names))
            only = self._settings["only"]
            raise ArgumentError(f"the network has no call of '{only}'.", hint=f"It calls {known}.")

    def _flat(self, args: Any, kwargs: Any) -> Sequence[Any]:
        """In the order of forward's arguments, as the graph takes them."""
        spec = self._module._in_spec if hasattr(self._module, "_in_spec") else None
        if spec is None or not kwargs:
            return (*args, *kwargs.values())
        order = spec.children_specs[1].context if hasattr(spec, "children_specs") else list(kwargs)
        return (*args, *[kwargs[name] for name in order])

    # ---- one call

    def _see(self, target: Any, node: Node, args: Any, kwargs: Any) -> None:
        self._seen += 1
        if self._progress is not None:
            share = (self._set + min(1.0, self._seen / self._nodes)) / self._sets
            self._progress(str(target), min(1.0, share))
        if not _gives_tensors(node):
            return
        self._names.add(str(target))
        if self._settings["only"] and self._settings["only"] not in (str(target), str(target).split(".")[1] if "." in str(target) else ""):
            return
        owner = node.graph.owning_module
        if owner not in self._constants:
            self._constants[owner] = _constant_nodes(owner)
        leaves, spec = pytree.tree_flatten((args, kwargs))
        nodes, _ = pytree.tree_flatten((node.args, node.kwargs), is_leaf=lambda value: isinstance(value, Node))
        if len(nodes) != len(leaves):  # a list that is one node
            nodes = [None] * len(leaves)
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        constants = [place for place in places if nodes[place] in self._constants[owner]]
        if len(constants) == len(places):
            if self._set == 0:
                self.constant_nodes += 1
            return
        sizes = [_sizes_text(nodes[place]) if place in places else None for place in range(len(leaves))]
        attributes = _attributes(target, node)
        shown = [f"{leaf.dtype} {sizes[place] or list(leaf.shape)} {layout_of(leaf)} {place in constants}" if isinstance(leaf, torch.Tensor) else
                 leaf.code if isinstance(leaf, GraphModule) else _number_text(nodes[place], leaf) for place, leaf in enumerate(leaves)]
        key = f"{target} {spec} {shown}"
        row = self.rows.get(key)
        if row is None:
            row = self.rows[key] = _Row(target, node, leaves, spec, sizes, constants, attributes)
        if self._set == 0:
            row.nodes += 1
        if key not in self._counted:
            self._counted.add(key)
            row.nodes = max(1, row.nodes)
            row.cases.append(self._test(row, leaves, nodes))

    def _test(self, row: _Row, leaves: Sequence[Any], nodes: Sequence[Any]) -> dict[str, Any]:
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        case: dict[str, Any] = {"sizes": self._sizes, "operands": [list(leaves[place].shape) for place in places], "kernel": "", "outcome": "not run", "reason": "",
                                "error": 0.0, "tolerance": 0.0}
        if isinstance(row.target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in row.target.tags and self._is_random(leaves, row.spec, row.target):
            return {**case, "reason": "its numbers are drawn at random."}
        inputs = [leaves[place] for place in places if place not in row.constants]
        operands = [leaves[place] for place in places]
        try:
            engine, module = self._engine(row, leaves, nodes, inputs)
        except Error as error:
            return {**case, **_refusal(row.target, error)}
        try:
            found = engine(*inputs)
        except Error as error:
            return {**case, "outcome": "wrong", "reason": f"it is refused when it runs: {error}"}
        case["kernel"] = _kernels(engine)
        judged = judge(module.call, operands, tensors_of(found), self._settings["tolerance"])
        return {**case, "outcome": "wrong" if judged.reason else "right", "reason": judged.reason and f"{judged.reason}.", "error": judged.error, "tolerance": judged.allowed}

    def _is_random(self, leaves: Sequence[Any], spec: Any, target: Any) -> bool:
        """Dropout of a network in eval mode draws nothing."""
        args, kwargs = pytree.tree_unflatten([leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], spec)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            before = torch.random.get_rng_state()
            target(*args, **kwargs)
            return not torch.equal(before, torch.random.get_rng_state())

    def _engine(self, row: _Row, leaves: Sequence[Any], nodes: Sequence[Any], inputs: Sequence[torch.Tensor]) -> tuple[Any, _Call]:
        """One engine serves all sizes where the operator leaves them open."""
        if row.engine is not None and row.module is not None and _takes(row.engine, inputs):
            return row.engine, row.module
        module = _Call(row.target, leaves, row.spec, row.constants).eval()
        varying = [node for node, leaf in zip(nodes, leaves) if isinstance(node, Node) and not isinstance(leaf, (torch.Tensor, nn.Module))]
        shapes: list[Any] = []
        for place, leaf in enumerate(leaves):
            if isinstance(leaf, torch.Tensor) and place not in row.constants:
                sizes = _open_axes(nodes[place])
                shapes.append({axis: torch.export.Dim.AUTO for axis in sizes if leaf.shape[axis] > 1} or None)
        if row.engine is None and not varying and any(shapes):
            try:
                row.engine, row.module = self._compile(module, tuple(inputs), (tuple(shapes),)), module
                if _takes(row.engine, inputs):
                    return row.engine, row.module
            except Error:  # PyTorch or the reader wants numbers
                pass
        engine = self._compile(module, tuple(inputs), None)
        if row.engine is None:
            row.engine, row.module = engine, module
        if varying:
            row.engine = row.module = None  # other numbers come with other sizes
        return engine, module

    # ---- sizes

    def _size_sets(self) -> list[tuple[dict[str, int], list[Any]]]:
        """The caller's own inputs, then others of the sizes that are wished."""
        symbols = self._symbols()
        wanted: Mapping[str, Sequence[int]] = self._settings["sizes"]
        for name in wanted:
            if name not in symbols:
                known = ", ".join(sorted(symbols)) or "none"
                raise ArgumentError(f"sizes are given for '{name}', which is no open size of the program.", hint=f"The open sizes are {known}.")
        own = {name: hint for name, (_, _, hint) in symbols.items()}
        sets = [(own, self._leaves)]
        if wanted:
            count = max(len(values) for values in wanted.values())
            for number in range(count):
                sizes = {**own, **{name: values[min(number, len(values) - 1)] for name, values in wanted.items()}}
                leaves = self._drawn(sizes)
                if not self._runs(leaves):
                    said = ", ".join(f"{name}={size}" for name, size in sizes.items())
                    raise ArgumentError(f"the network does not take the sizes {said}.", hint="Give sizes that its own checks let pass.")
                sets.append((sizes, leaves))
            return sets
        for wish in _WISHES if symbols else ():
            for sizes in _wished(symbols, wish):
                leaves = self._drawn(sizes)
                if self._runs(leaves):
                    if all(sizes != known for known, _ in sets):
                        sets.append((sizes, leaves))
                    break
            else:
                self.notes.append(f"No {wish} sizes were found that the network takes.")
        return sets

    def _symbols(self) -> dict[str, tuple[int, int, int]]:
        """Open size → least, largest, that of the caller's inputs."""
        found: dict[str, tuple[int, int, int]] = {}
        for place, value in self._placeholders():
            for axis, size in enumerate(value.shape):
                formula = expression(size)
                if formula.is_Symbol:
                    limits = self._program.range_constraints.get(formula)
                    low = int(limits.lower) if limits is not None else 2
                    high = int(limits.upper) if limits is not None and abs(limits.upper) < 2**62 else 2**62
                    found[str(formula)] = (max(1, low), high, int(self._leaves[place].shape[axis]))
        return found

    def _placeholders(self) -> Iterator[tuple[int, torch.Tensor]]:
        """The tensors of forward's arguments, traced, each with its place among the leaves."""
        nodes = [node for node in self._module.graph.nodes if node.op == "placeholder"]
        if len(nodes) != len(self._leaves):
            given, wanted = len(self._leaves), len(nodes)
            raise ArgumentError(f"{given} example inputs are given, the program takes {wanted}.", hint="Give those that it was exported with.")
        for place, (node, leaf) in enumerate(zip(nodes, self._leaves)):
            if isinstance(leaf, torch.Tensor) and isinstance(node.meta.get("val"), torch.Tensor):
                yield place, node.meta["val"]

    def _drawn(self, sizes: Mapping[str, int]) -> list[Any]:
        """Inputs of these sizes whose elements are drawn from the caller's, so that indices stay in range."""
        generator = torch.Generator().manual_seed(self._settings["seed"])
        leaves = list(self._leaves)
        for place, value in self._placeholders():
            formulas = [expression(size) for size in value.shape]
            if all(formula.is_number for formula in formulas):
                continue
            shape = [int(formula.subs({symbol: sizes[str(symbol)] for symbol in formula.free_symbols})) for formula in formulas]
            given = self._leaves[place].detach()
            count = max(1, given.numel())
            elements = given.reshape(-1) if given.numel() else given.new_zeros(1)
            drawn = elements[torch.randint(count, (int(torch.Size(shape).numel()),), generator=generator)].reshape(shape)
            leaves[place] = drawn.contiguous(memory_format=torch.channels_last) if layout_of(given) == "channels_last" and given.dim() == 4 else drawn
        return leaves

    def _runs(self, leaves: Sequence[Any]) -> bool:
        args, kwargs = pytree.tree_unflatten([leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], self._spec)
        try:
            self._module(*args, **kwargs)
        except Exception:  # a guard of the program or an operator
            return False
        return True


def _wished(symbols: Mapping[str, tuple[int, int, int]], wish: str) -> Iterator[dict[str, int]]:
    step = 1 if wish == "least" else 2
    for tried in range(_TRIES // step):
        sizes = {}
        for name, (low, high, _) in symbols.items():
            span = min(_GROWTH, high - low)
            value = {"least": low, "middle": (low + span // 2) // 2 * 2, "odd": (low + span // 2 + span // 8) | 1}[wish] + step * tried
            if value > high:
                value = high - (wish == "odd" and high % 2 == 0)
            sizes[name] = max(low, value)
        yield sizes


def _gives_tensors(node: Node) -> bool:
    return any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(node.meta.get("val")))


def _open_axes(node: Any) -> list[int]:
    value = node.meta.get("val") if isinstance(node, Node) else None
    return [axis for axis, size in enumerate(value.shape) if not expression(size).is_number] if isinstance(value, torch.Tensor) else []


def _sizes_text(node: Any) -> list[str] | None:
    value = node.meta.get("val") if isinstance(node, Node) else None
    return [str(expression(size)) for size in value.shape] if isinstance(value, torch.Tensor) else None


def _number_text(node: Any, leaf: Any) -> str:
    value = node.meta.get("val") if isinstance(node, Node) else None
    return str(expression(value)) if isinstance(value, torch.SymInt) else repr(leaf)


def _attributes(target: Any, node: Node) -> str:
    """The arguments that are no tensors, by their names: "stride=[2, 2] padding=[1, 1]"."""
    schema = getattr(target, "_schema", None)
    if schema is None:
        return ""
    words = []
    for place, parameter in enumerate(schema.arguments):
        given = node.args[place] if place < len(node.args) else node.kwargs.get(parameter.name)
        if given is None or "Tensor" in str(parameter.type):
            continue
        leaves, spec = pytree.tree_flatten(given, is_leaf=lambda value: isinstance(value, Node))
        plain = [_Bare(_number_text(leaf, leaf)) if isinstance(leaf, Node) else leaf for leaf in leaves]
        words.append(f"{parameter.name}={pytree.tree_unflatten(plain, spec)!r}")
    return " ".join(words)


class _Bare(str):
    def __repr__(self) -> str:
        return str(self)


def _takes(engine: _native.Engine, inputs: Sequence[torch.Tensor]) -> bool:
    """Whether the sizes are those that the engine declares; PyTorch's export may have fixed an open one."""
    ports = engine.inputs
    return len(ports) == len(inputs) and all(len(port.shape) == tensor.dim() and all(isinstance(size, str) or size == found for size, found in zip(port.shape, tensor.shape))
                                             for port, tensor in zip(ports, inputs))


def _kernels(engine: _native.Engine) -> str:
    rows = dict.fromkeys("reference loops" if step["reference"] else step["rows"][0] for step in engine.info()["steps"] if step["rows"])
    return ", ".join(rows) or "view"


def _refusal(target: Any, error: Error) -> dict[str, str]:
    if error.message.startswith(("PyTorch cannot export", "the module fails")):
        return {"outcome": "not run", "reason": str(error)}
    lacking = isinstance(error, UnsupportedError) and isinstance(target, torch._ops.OpOverload) and str(target) not in _converters.taken()
    return {"outcome": "missing" if lacking else "refused", "reason": str(error)}
