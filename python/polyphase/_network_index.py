"""Indexing of a Network's tensors: x[0, :, 1:-1, ::2]."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from ._errors import ArgumentError

if TYPE_CHECKING:
    from ._network import Network, Tensor


def _expanded(x: Tensor, index: tuple[Any, ...]) -> list[Any]:
    """One entry per axis (and the Nones between them)."""
    count = sum(1 for entry in index if entry is not None and entry is not Ellipsis)
    ellipses = sum(1 for entry in index if entry is Ellipsis)
    if ellipses > 1 or count > x.ndim:
        raise ArgumentError(f"tensor '{x.name}' of rank {x.ndim} is indexed with {count} entries and {ellipses} ellipses.", hint="Give one entry per axis at most, and one ellipsis.")
    rest = [slice(None)] * (x.ndim - count)
    if ellipses == 0:
        return [*index, *rest]
    at = next(i for i, entry in enumerate(index) if entry is Ellipsis)
    return [*index[:at], *rest, *index[at + 1:]]


def _bounds(x: Tensor, axis: int, entry: slice) -> tuple[Any, Any, int]:
    """start, size, step of a slice; of a symbolic size only what needs no clamping."""
    size = x.shape[axis]
    if isinstance(size, int):
        start, stop, step = entry.indices(size)
        return start, len(range(start, stop, step)), step
    step = 1 if entry.step is None else operator.index(entry.step)
    if step < 1:
        raise ArgumentError(f"axis {axis} of tensor '{x.name}' is symbolic and is indexed with the step {step}.", hint="Use slice with start, size and step.")
    start = 0 if entry.start is None else entry.start
    stop = size if entry.stop is None else entry.stop
    start = size + start if isinstance(start, int) and start < 0 else start
    stop = size + stop if isinstance(stop, int) and stop < 0 else stop
    length = stop - start if not (isinstance(start, int) and start == 0) else stop
    return start, length if step == 1 else (length + (step - 1)) // step, step


def piece(network: Network, x: Tensor, index: tuple[Any, ...]) -> Tensor:
    """x[index] as slice and reshape; a tensor as an index gathers along its axis."""
    starts, sizes, steps, shape = [], [], [], []
    axis = 0
    gathered = []
    for entry in _expanded(x, index):
        if entry is None:
            shape.append(1)
            continue
        size = x.shape[axis]
        if isinstance(entry, slice):
            start, length, step = _bounds(x, axis, entry)
            shape.append(length)
        elif hasattr(entry, "network"):
            gathered.append((len(shape), entry))
            start, length, step = 0, size, 1
            shape.append(length)
        else:
            start, length, step = _place(x, axis, entry), 1, 1
        starts.append(start)
        sizes.append(length)
        steps.append(step)
        axis += 1
    if any(start != 0 or step != 1 for start, step in zip(starts, steps)) or tuple(sizes) != x.shape:
        x = network.slice(x, start=starts, size=sizes, step=steps)
    if len(shape) != x.ndim or any(entry is None for entry in index):
        x = network.reshape(x, shape=shape)
    for at, indices in reversed(gathered):
        x = network.gather(x, indices, axis=at)
    return x


def _place(x: Tensor, axis: int, entry: Any) -> Any:
    size = x.shape[axis]
    if not hasattr(entry, "__index__"):
        raise ArgumentError(f"tensor '{x.name}' is indexed with a {type(entry).__name__}.", hint="Index with integers, slices, None, an ellipsis or integer tensors.")
    place = operator.index(entry)
    if isinstance(size, int) and not -size <= place < size:
        raise ArgumentError(f"tensor '{x.name}' is indexed at {place} of axis {axis}, which has {size} places.", hint="Places count from 0, or from the end: -1 is the last.")
    return place if place >= 0 else size + place
