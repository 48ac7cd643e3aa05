"""Which operators are taken as they are, and how others are written in terms of them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Set
from typing import Any, TypeVar

import torch

from .. import _native
from .._errors import ArgumentError
from ._rewrites import REWRITES

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclasses.dataclass
class _Own:
    function: Callable[..., Any]
    take_over: bool


_own: dict[torch._ops.OpOverload, _Own] = {}


def converter(overload: torch._ops.OpOverload, *, take_over: bool = False) -> Callable[[_F], _F]:
    """Teaches Polyphase an operator: a decorator for a function that computes it with operators that Polyphase has.

        @polyphase.torch.converter(torch.ops.mylib.snake.default)
        def snake(x, alpha):
            return x + torch.sin(alpha * x) ** 2 / alpha

    overload: of a library of yours, or one of ATen that `polyphase converters` does not list.
    take_over: also where Polyphase has a converter of its own, which then is not asked.

    The function is called while a network is compiled, with tensors that hold no numbers; it takes what the operator takes and
    returns what it returns, in new tensors. polyphase.compile, polyphase.explain and torch.compile use it from then on. The
    last function registered for an overload counts; remove_converter forgets it.

    Raises Error: invalid_argument (no overload, or one that Polyphase has and take_over is not set).
    """
    if not isinstance(overload, torch._ops.OpOverload):
        raise ArgumentError(f"a converter is registered for a {type(overload).__name__}.", hint="Give an overload: torch.ops.mylib.snake.default.")
    if not take_over and str(overload) in taken():
        name = str(overload)
        raise ArgumentError(f"Polyphase has a converter for {name}.", hint="Give take_over=True to use yours instead.")

    def register(function: _F) -> _F:
        _own[overload] = _Own(function, take_over)
        return function

    return register


def remove_converter(overload: torch._ops.OpOverload) -> None:
    """Forgets what converter registered. Raises Error: invalid_argument (nothing is registered)."""
    if _own.pop(overload, None) is None:
        name = str(overload)
        raise ArgumentError(f"no converter of yours is registered for {name}.", hint="Registered ones are those given to polyphase.torch.converter.")


@functools.cache
def taken() -> frozenset[str]:
    """Overloads that the C++ reader has converters for: 'aten.relu.default'."""
    return frozenset(_native.converters())


def own_overloads() -> set[torch._ops.OpOverload]:
    return set(_own)


@functools.cache
def _of_pytorch() -> dict[Any, Callable[..., Any]]:
    """PyTorch's own ways to write what Polyphase lacks in other operators."""
    table = {**torch.export.default_decompositions(), **REWRITES}
    return {overload: function for overload, function in table.items()
            if str(overload) not in taken() and torch.Tag.nondeterministic_seeded not in overload.tags}


@functools.cache
def _composites() -> tuple[Any, ...]:
    """Operators that PyTorch takes apart before a backend sees them (upsampling, normalisation, attention), of those that we take."""
    from torch._export.utils import _collect_all_valid_cia_ops_for_aten_namespace

    return tuple(overload for overload in _collect_all_valid_cia_ops_for_aten_namespace()
                 if str(overload) in taken() and all("Tensor" in str(result.type) for result in overload._schema.returns))


def keep_composites(claimed: Set[str] = frozenset()) -> contextlib.AbstractContextManager[Any]:
    """While it lasts, operators that we or plugins take stay whole, as torch.export leaves them; none where this PyTorch cannot."""
    try:
        from torch.export.exported_program import _override_composite_implicit_decomp

        kept = {overload: _not_taken_apart for overload in (*_composites(), *_composites_among(claimed)) if overload not in _own or str(overload) in claimed}
    except ImportError:
        return contextlib.nullcontext()
    return _override_composite_implicit_decomp(kept)


def _composites_among(names: Set[str]) -> list[Any]:
    """Overloads of other libraries that PyTorch would take apart, of those that it knows by these names."""
    found = []
    for name in names:
        library, operator, overload = name.split(".", 2)
        with contextlib.suppress(AttributeError, RuntimeError):
            known = getattr(getattr(getattr(torch.ops, library), operator), overload)
            if known._can_decompose():
                found.append(known)
    return found


def _not_taken_apart(*_: Any, **__: Any) -> Any:
    return NotImplemented


def decompositions(claimed: Set[str] = frozenset()) -> dict[Any, Callable[..., Any]]:
    """Overload → function that computes it by others: the user's own first. What a plugin of this compilation claims stays whole."""
    table = {**_of_pytorch(), **{overload: own.function for overload, own in _own.items()}}
    return {overload: function for overload, function in table.items() if str(overload) not in claimed}
