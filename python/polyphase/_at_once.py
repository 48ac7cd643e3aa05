"""One implementation for tensors of a network and for arrays: functions that add layers, run at once where they are given arrays."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from . import _native
from ._errors import ArgumentError
from ._network import Network, Tensor, _plain_array, dtype_name

_KEPT = 64  # engines of one function


def is_array(given: Any) -> bool:
    return not isinstance(given, Tensor) and hasattr(given, "shape") and hasattr(given, "dtype") and (hasattr(given, "__dlpack__") or hasattr(given, "__array_interface__"))


def mapped(given: Any, change: Callable[[Any], Any]) -> Any:
    """The same lists, tuples and dicts with other leaves; kinds of tuples that hold certain things only, such as torch.Size, become tuples."""
    if isinstance(given, tuple):
        made = [mapped(one, change) for one in given]
        return type(given)(*made) if hasattr(given, "_fields") else tuple(made)
    if isinstance(given, list):
        return [mapped(one, change) for one in given]
    if isinstance(given, dict):
        return {key: mapped(one, change) for key, one in given.items()}
    return change(given)


def leaves(given: Any) -> list[Any]:
    found: list[Any] = []
    mapped(given, found.append)
    return found


def _frozen(given: Any) -> Hashable:
    """What decides which layers are written; arrays count by dtype and shape."""
    if isinstance(given, (list, tuple)):
        return (type(given).__name__, *(_frozen(one) for one in given))
    if isinstance(given, dict):
        return ("dict", *((key, _frozen(one)) for key, one in given.items()))
    if is_array(given):
        return ("array", dtype_name(given.dtype), tuple(int(size) for size in given.shape))
    return (type(given).__name__, given)


class AtOnce:
    """Compiles what a function writes for arrays of these dtypes and shapes, and keeps the engine."""

    def __init__(self, write: Callable[..., Any], name: str):
        self._write = write
        self._name = name
        self._kept: OrderedDict[Hashable, tuple[_native.Engine, Any]] = OrderedDict()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = mapped((args, kwargs), lambda one: _plain_array(one) if is_array(one) else one)
        arrays = [one for one in leaves((args, kwargs)) if is_array(one)]
        key = _frozen((args, kwargs))
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self._compiled(args, kwargs)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        engine, results = found
        outputs = engine(*arrays)
        outputs = iter(outputs if isinstance(outputs, (list, tuple)) else [outputs])
        return mapped(results, lambda one: next(outputs) if one is _RESULT else one)

    def _compiled(self, args: Any, kwargs: Any) -> tuple[_native.Engine, Any]:
        net = Network(self._name)
        count = 0

        def as_input(one: Any) -> Any:
            nonlocal count
            if not is_array(one):
                return one
            count += 1
            return net.add_input(f"array{count - 1}", one.dtype, tuple(int(size) for size in one.shape))

        args, kwargs = mapped((args, kwargs), as_input)
        results = self._write(net, *args, **kwargs)
        made = [one for one in leaves(results) if isinstance(one, Tensor)]
        if not made:
            raise ArgumentError(f"'{self._name}' returned no tensor.", hint="Return the tensors that it writes.")
        for i, tensor in enumerate(made):
            net.mark_output(tensor, f"result{i}")
        return net.compile(), mapped(results, lambda one: _RESULT if isinstance(one, Tensor) else one)


_RESULT = object()  # where a result's array stands


def layer(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function that writes layers, function(net, *operands, **settings), one of tensors and of arrays alike.

        @polyphase.layer
        def double(net, x, weight):
            return net.relu(net.add_deconvolution_nd(x, weight, stride=2))

        double(tensor, weight)     # adds the layers to the tensor's network
        double(array, weight)      # runs them at once: compiled for these dtypes and shapes, the engine is kept

    Without a tensor among its operands it writes into the network of the innermost `with`, if there is one and no array is given. Arrays beside
    tensors are constants. NumPy in, NumPy out; PyTorch in, PyTorch out.
    """
    at_once = AtOnce(function, function.__name__)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = leaves((args, kwargs))
        networks = {id(one.network): one.network for one in given if isinstance(one, Tensor)}
        if len(networks) > 1:
            raise ArgumentError(f"'{function.__name__}' is given tensors of {len(networks)} networks.", hint="Give tensors of one.")
        if networks:
            return function(*networks.values(), *args, **kwargs)
        if any(is_array(one) for one in given):
            return at_once(*args, **kwargs)
        current = Network.current()
        if current is None:
            raise ArgumentError(f"'{function.__name__}' is given neither tensors nor arrays, outside of a network.", hint="Give some, or call it inside of `with Network() as net:`.")
        return function(current, *args, **kwargs)

    return call
