"""What the functions of polyphase.nn.functional share: one implementation for tensors of a network and for arrays."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

from .._at_once import layer
from .._errors import ArgumentError
from .._network import Network, Size, Tensor


def function(write: Callable[..., Any]) -> Callable[..., Any]:
    """write(net, …) as a function without net: of a network's tensors, which adds layers, or of arrays, which runs at once."""
    call = layer(write)
    signature = inspect.signature(write)
    call.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
    return call


def tensor(net: Network, given: Any, what: str) -> Tensor:
    """An operand as a tensor; arrays and numbers become constants."""
    if isinstance(given, Tensor):
        return given
    if isinstance(given, Size):
        return net.dims(values=[given], scalar=True)
    if given is None:
        raise ArgumentError(f"{what} is None.", hint="Give a tensor or an array.")
    return net.add_constant(given)


def axis_of(x: Tensor, dim: Any, what: str = "dim", *, rank: int | None = None) -> int:
    """An axis counted from 0."""
    rank = x.ndim if rank is None else rank
    try:
        axis = operator.index(dim)
    except TypeError:
        raise ArgumentError(f"{what} is {dim!r:.60}.", hint="Axes are integers.") from None
    if not -rank <= axis < rank:
        raise ArgumentError(f"{what} is {axis}, but tensor '{x.name}' has rank {x.ndim}.", hint=f"Axes count from {-rank} to {rank - 1} here.")
    return axis + rank if axis < 0 else axis


def axes_of(x: Tensor, dims: Any, what: str = "dim", *, rank: int | None = None) -> list[int]:
    """One axis or several, each once."""
    given = list(dims) if isinstance(dims, (list, tuple)) else [dims]
    axes = [axis_of(x, dim, what, rank=rank) for dim in given]
    if len(set(axes)) != len(axes):
        raise ArgumentError(f"{what} names an axis twice: {dims!r:.60}.", hint="Name each axis once.")
    return axes


def per_axis(given: Any, count: int, what: str) -> list[int]:
    """One integer for every axis, or one for each."""
    entries: Sequence[Any] = given if isinstance(given, (list, tuple)) else [given] * count
    try:
        numbers = [operator.index(one) for one in entries]
    except TypeError:
        raise ArgumentError(f"{what} is {given!r:.60}.", hint="Give an integer, or one for each spatial axis.") from None
    if len(numbers) == 1:
        numbers = numbers * count
    if len(numbers) != count:
        raise ArgumentError(f"{what} has {len(numbers)} entries for {count} spatial axes.", hint="Give one, or one for each axis.")
    return numbers


def is_float(x: Tensor) -> bool:
    return x.dtype.startswith(("float", "bfloat"))
