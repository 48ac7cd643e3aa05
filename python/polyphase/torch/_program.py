"""Part of a graph of ATen operators as the archive that torch.export.save writes, for Polyphase's own reader (schema version 8).

The graph need not have gone through torch.export: sizes are taken from the tensors that it was traced with.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from torch.fx import Node

# Codes of the schema (torch/_export/serde/schema.py).
_DTYPES = {torch.uint8: 1, torch.int8: 2, torch.int16: 3, torch.int32: 4, torch.int64: 5, torch.float16: 6, torch.float32: 7,
           torch.float64: 8, torch.complex64: 10, torch.complex128: 11, torch.bool: 12, torch.bfloat16: 13}
_MEMORY_FORMATS = {torch.contiguous_format: 1, torch.channels_last: 2, torch.channels_last_3d: 3, torch.preserve_format: 4}
_STRIDED = 7
_CARRIER = "sizes_carrier"


class NotWritable(Exception):
    """Why a node cannot be written down."""


def expression(size: Any) -> sympy.Expr:
    """What a size is: a number or a formula over symbols."""
    return size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(int(size))


def symbols_of(value: Any) -> set[sympy.Symbol]:
    """The open sizes that a traced value, or a list of them, depends on."""
    if isinstance(value, torch.Tensor):
        found: set[sympy.Symbol] = set()
        for size in value.shape:
            if isinstance(size, torch.SymInt):
                found |= expression(size).free_symbols
        return found
    if isinstance(value, torch.SymInt):
        return set(expression(value).free_symbols)
    if isinstance(value, (list, tuple)):
        return set().union(*map(symbols_of, value))
    return set()


def hint(size: Any) -> int:
    """The number that an open size had when the graph was traced."""
    known: Any = size.node.hint if isinstance(size, torch.SymInt) else size
    return int(known)


def stored_order(value: torch.Tensor) -> list[int] | None:
    """The axes in the order in which memory holds them, where that is dense but not row-major: [0, 2, 3, 1] of channels_last."""
    sizes, strides = [hint(size) for size in value.shape], [hint(stride) for stride in value.stride()]
    order = sorted(range(len(sizes)), key=lambda axis: (-strides[axis], axis))
    for candidate in (list(range(len(sizes))), order):
        step = 1
        for axis in reversed(candidate):
            if sizes[axis] != 1 and strides[axis] != step:
                break
            step *= sizes[axis]
        else:
            return candidate if candidate != sorted(candidate) else None
    return None


def result_names(node: Node) -> list[str | None]:
    """The names that a node's results have in the program: its own, or those of the getitem nodes behind it."""
    if isinstance(node.meta.get("val"), torch.Tensor):
        return [node.name]
    names: list[str | None] = [None] * len(node.meta["val"])
    for user in node.users:
        place: Any = user.args[1]
        names[place] = names[place] or user.name
    return names


def _number(size: Any) -> dict[str, Any]:
    formula = expression(size)
    if formula.is_Integer:
        return {"as_int": int(formula)}
    return {"as_expr": {"expr_str": sympy.srepr(formula)}}


def _real(value: float) -> Any:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _entry(sizes: Sequence[Any], dtype: torch.dtype) -> dict[str, Any]:
    if dtype not in _DTYPES:
        raise NotWritable(f"a tensor has the type {dtype}")
    zero = {"as_int": 0}
    return {"dtype": _DTYPES[dtype], "sizes": [_number(size) for size in sizes], "requires_grad": False,
            "device": {"type": "cpu", "index": None}, "strides": [zero] * len(sizes), "storage_offset": zero, "layout": _STRIDED}


class Program:
    """One program being written: inputs, nodes in order, outputs. Names are those of the nodes of the graph."""

    def __init__(self, ranges: Mapping[sympy.Symbol, Any]) -> None:
        self.inputs: list[Node] = []  # in order
        self.orders: list[list[int] | None] = []  # stored_order of each
        self.outputs: list[Node] = []
        self.output_orders: list[list[int] | None] = []
        self.carried: list[sympy.Symbol] = []  # sizes that no input has: those of an array without elements, the first input
        self.weights: dict[str, Node] = {}
        self.tune_for: dict[str, list[int]] = {}
        self._ranges = ranges
        self._symbols: set[sympy.Symbol] = set()
        self._tensors: dict[str, Any] = {}
        self._numbers: dict[str, Any] = {}
        self._nodes: list[dict[str, Any]] = []
        self._specs: list[dict[str, Any]] = []
        self._results: list[dict[str, Any]] = []

    def declare(self, name: str, value: torch.Tensor) -> None:
        self._symbols |= symbols_of(value)
        where = {"strides": [_number(stride) for stride in value.stride()], "storage_offset": _number(value.storage_offset())}  # as_strided counts there
        self._tensors[name] = {**_entry(value.shape, value.dtype), **where}

    def add_weight(self, node: Node) -> None:
        self.weights[node.name] = node
        self.declare(node.name, node.meta["val"])
        self._specs.append({"parameter": {"arg": {"name": node.name}, "parameter_name": node.name}})

    def add_input(self, node: Node) -> None:
        """In the order of memory: a channels-last array comes in as the row-major array that it is, with the axes permuted."""
        value = node.meta["val"]
        order = stored_order(value)
        self.inputs.append(node)
        self.orders.append(order)
        self.declare(node.name, value)
        name = node.name
        if order is not None:
            name += "_in_memory"
            self._tensors[name] = _entry([value.shape[axis] for axis in order], value.dtype)
            self._permute(name, node.name, [order.index(axis) for axis in range(len(order))])
        self._tune(name, [value.shape[axis] for axis in order] if order else value.shape)
        self._specs.append({"user_input": {"arg": {"as_tensor": {"name": name}}}})

    def _tune(self, name: str, sizes: Iterable[Any]) -> None:
        self.tune_for[name] = [hint(size) for size in sizes]

    def _permute(self, source: str, target: str, axes: list[int]) -> None:
        self._nodes.append({"target": "torch.ops.aten.permute.default", "name": target, "metadata": {},
                            "inputs": [_argument("self", {"as_tensor": {"name": source}}), _argument("dims", {"as_ints": axes})],
                            "outputs": [{"as_tensor": {"name": target}}]})

    def add_node(self, node: Node) -> None:
        value = node.meta["val"]
        results = [value] if isinstance(value, torch.Tensor) else list(value)
        names = [name or f"{node.name}_unused_{place}" for place, name in enumerate(result_names(node))]
        for name, result in zip(names, results):
            if isinstance(result, torch.Tensor):
                self.declare(name, result)
        schema = node.target._schema  # type: ignore[union-attr]
        inputs = []
        for place, parameter in enumerate(schema.arguments):
            if place < len(node.args):
                given = node.args[place]
            elif parameter.name in node.kwargs:
                given = node.kwargs[parameter.name]
            else:
                continue
            inputs.append(_argument(parameter.name, self._value(given, parameter.type)))
        outputs: list[dict[str, Any]] = [{"as_tensor": {"name": name}} for name in names]
        if len(schema.returns) == 1 and not isinstance(value, torch.Tensor):
            outputs = [{"as_tensors": [{"name": name} for name in names]}]
        self._nodes.append({"target": f"torch.ops.{node.target}", "name": node.name, "inputs": inputs, "outputs": outputs,
                            "metadata": {"stack_trace": node.meta.get("stack_trace") or ""}})

    def add_output(self, node: Node) -> None:
        order = stored_order(node.meta["val"])
        self.outputs.append(node)
        self.output_orders.append(order)
        name = node.name
        if order is not None:
            name += "_in_memory"
            value = node.meta["val"]
            self._tensors[name] = _entry([value.shape[axis] for axis in order], value.dtype)
            self._permute(node.name, name, order)
        self._results.append({"user_output": {"arg": {"as_tensor": {"name": name}}}})

    def carry(self, known: set[sympy.Symbol]) -> None:
        """Where sizes follow from no input, they come in as the shape of an array without elements."""
        self.carried = sorted(self._symbols - known, key=str)
        if self.carried:
            entry = _entry([0], torch.uint8)
            sizes = [{"as_expr": {"expr_str": sympy.srepr(symbol)}} for symbol in self.carried]
            self._tensors[_CARRIER] = {**entry, "sizes": [*sizes, *entry["sizes"]]}
            self._specs.insert(0, {"user_input": {"arg": {"as_tensor": {"name": _CARRIER}}}})

    def _number_argument(self, number: torch.SymInt) -> dict[str, Any]:
        formula = expression(number)
        self._symbols |= set(formula.free_symbols)
        if formula.is_Integer:
            return {"as_int": int(formula)}
        name = f"number_{len(self._numbers)}"
        self._numbers[name] = _number(number)
        return {"as_name": name}

    def _value(self, given: Any, kind: Any) -> dict[str, Any]:
        """An argument; `kind` is the type that the operator declares."""
        if isinstance(given, Node):
            value = given.meta["val"]
            if isinstance(value, torch.SymInt):
                return {"as_sym_int": self._number_argument(value)}
            if not isinstance(value, torch.Tensor):
                raise NotWritable(f"it takes a {type(value).__name__} that only a run knows")
            return {"as_tensor": {"name": given.name}}
        if isinstance(given, torch.SymInt):
            return {"as_sym_int": self._number_argument(given)}
        if given is None:
            return {"as_none": True}
        if isinstance(given, bool):
            return {"as_bool": given}
        if isinstance(given, int):
            return {"as_int": given}
        if isinstance(given, float):
            return {"as_float": _real(given)}
        if isinstance(given, complex):
            return {"as_complex": {"real": _real(given.real), "imag": _real(given.imag)}}
        if isinstance(given, str):
            return {"as_string": given}
        if isinstance(given, torch.dtype):
            return {"as_scalar_type": _DTYPES.get(given, 0)}
        if isinstance(given, torch.memory_format):
            return {"as_memory_format": _MEMORY_FORMATS[given]}
        if isinstance(given, torch.layout):
            return {"as_layout": _STRIDED if given == torch.strided else 0}
        if isinstance(given, torch.device):
            return {"as_device": {"type": given.type, "index": given.index}}
        if isinstance(given, (list, tuple)):
            return self._list(given, kind)
        raise NotWritable(f"it takes a {type(given).__name__}")

    def _list(self, given: Sequence[Any], kind: Any) -> dict[str, Any]:
        values = [self._value(item, None) for item in given]
        keys = {key for value in values for key in value}
        if not values:
            return {"as_tensors": []} if "Tensor" in str(kind) else {"as_floats": []} if "float" in str(kind) else {"as_ints": []}
        if keys == {"as_tensor"} and "Optional" not in str(kind):
            return {"as_tensors": [value["as_tensor"] for value in values]}
        if keys <= {"as_tensor", "as_none"}:
            return {"as_optional_tensors": values}
        if keys <= {"as_int", "as_sym_int"} and "as_sym_int" in keys:
            return {"as_sym_ints": [value.get("as_sym_int", value) for value in values]}
        if keys <= {"as_int", "as_float"} and "as_float" in keys:
            return {"as_floats": [_real(float(item)) for item in given]}
        if len(keys) == 1 and keys <= {"as_int", "as_bool", "as_string"}:
            [key] = keys
            return {f"{key}s": [value[key] for value in values]}
        raise NotWritable(f"it takes a list of {', '.join(sorted(keys))}")

    def json(self) -> str:
        limits = {}
        for symbol in self._symbols:
            given = self._ranges.get(symbol)
            low, high = (getattr(given, "lower", None), getattr(given, "upper", None))
            limits[str(symbol)] = {"min_val": _limit(low), "max_val": _limit(high)}
        arguments = [next(iter(spec.values()))["arg"] for spec in self._specs]
        graph = {"inputs": [argument if "as_tensor" in argument else {"as_tensor": argument} for argument in arguments],
                 "outputs": [result["user_output"]["arg"] for result in self._results], "nodes": self._nodes,
                 "tensor_values": self._tensors, "sym_int_values": self._numbers, "sym_bool_values": {}, "sym_float_values": {},
                 "is_single_tensor_return": False}
        signature = {"input_specs": self._specs, "output_specs": self._results}
        return json.dumps({"graph_module": {"graph": graph, "signature": signature, "module_call_graph": [], "metadata": {}},
                           "opset_version": {"aten": 10}, "range_constraints": limits, "guards_code": [], "verifiers": [],
                           "schema_version": {"major": 8, "minor": 17}, "torch_version": torch.__version__}, sort_keys=True)


def _argument(name: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "arg": value, "kind": 1}


def _limit(end: Any) -> int | None:
    return int(end) if isinstance(end, (int, sympy.Integer)) and abs(int(end)) < 2**62 else None


def raw_bytes(tensor: torch.Tensor) -> memoryview:
    """A tensor's elements in row-major order, without a copy where it lies so."""
    if tensor.numel() == 0:
        return memoryview(b"")
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    elements: Any = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
    return memoryview(elements)


def archive(text: str, weights: Mapping[str, torch.Tensor]) -> bytes:
    """The program and its weights as the bytes of a .pt2 file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as members:
        for name, content in (("archive_format", "pt2"), ("archive_version", "0"), ("byteorder", "little"), ("models/model.json", text)):
            members.writestr(f"archive/{name}", content)
        config = {}
        for place, (name, tensor) in enumerate(weights.items()):
            entry = _entry(tensor.shape, tensor.dtype)
            strides = torch.empty(tensor.shape, device="meta").stride()
            config[name] = {"path_name": f"weight_{place}", "is_param": True, "use_pickle": False,
                            "tensor_meta": {**entry, "strides": [{"as_int": stride} for stride in strides]}}
            with members.open(f"archive/data/weights/weight_{place}", "w", force_zip64=True) as member:
                member.write(raw_bytes(tensor))
        members.writestr("archive/data/weights/model_weights_config.json", json.dumps({"config": config}))
    return file.getvalue()
