"""Functions that move elements: shapes, pieces, choices."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from .._errors import ArgumentError
from .._network import Network, Size, Tensor, dtype_name
from ._function import axes_of, axis_of, function, tensor

_operand = tensor  # where a parameter has that name
_CAST_DTYPES = ("float32", "float16", "bfloat16", "bool", "int32", "int8")


@function
def cast(net: Network, input: Any, dtype: Any) -> Any:
    """input in another dtype: float32, float16, bfloat16, bool, int32 or int8.

    int8 is quantisation with scale 1. To int8: rounded to the nearest integer, ties to even, values beyond ±127 saturate, a NaN becomes 0.
    From int8: the numbers as they are. (Network.cast truncates and saturates, and wraps integers: docs/semantics.md.)
    """
    name = dtype_name(dtype)
    if name not in _CAST_DTYPES:
        raise ArgumentError(f"dtype is {name!r:.60}.", hint=f"cast takes {', '.join(_CAST_DTYPES)}.")
    x = tensor(net, input, "input")
    if name != "int8" or x.dtype in ("int8", "bool"):
        return net.cast(x, to=name)
    if x.dtype.startswith("uint"):
        return net.cast(net.min(x, 127), to="int8")
    if not x.dtype.startswith(("float", "bfloat")):
        return net.cast(net.max(net.min(x, 127), -127), to="int8")
    wide = x if x.dtype in ("float32", "float64") else net.cast(x, to="float32")
    return net.cast(net.clip(net.round(wide), low=-127.0, high=127.0), to="int8")


@function
def view(net: Network, input: Any, shape: Any, zero_is_placeholder: bool = True) -> Any:
    """input under another shape of as many elements. At most one size is -1, which the others tell.

    A size of 0 copies the size of input's axis there if zero_is_placeholder, else it is a size of 0. shape may be a tensor: a vector of
    integers of known length, whose values a run tells, -1 and 0 as well.
    """
    x = tensor(net, input, "input")
    if isinstance(shape, Tensor):
        return net.reshape(x, shape=sizes_of_tensor(net, _whole_shape(net, x, shape, zero_is_placeholder)))
    given = list(shape) if isinstance(shape, (list, tuple)) else [shape]
    sizes = list(given)
    for axis, size in enumerate(given):
        if size == 0 and zero_is_placeholder and isinstance(size, int):
            if axis >= x.ndim:
                raise ArgumentError(f"the shape {given!r:.60} copies the size of axis {axis}, but tensor '{x.name}' has rank {x.ndim}.",
                                    hint="Give the size, or zero_is_placeholder=False for a size of 0.")
            sizes[axis] = x.shape[axis]
        elif isinstance(size, int) and size < -1:
            raise ArgumentError(f"the shape {given!r:.60} has a negative size.", hint="Sizes are 0 or more, or -1 once.")
    return net.view(x, sizes)


def _vector_of(shape: Tensor) -> int:
    """The length of a vector of sizes."""
    length = shape.shape[0] if shape.ndim == 1 else None
    if not isinstance(length, int) or shape.dtype not in ("int64", "int32"):
        raise ArgumentError(f"the shape is tensor '{shape.name}', {shape.dtype} with the sizes {list(shape.shape)}.", hint="Give a vector of integers, of known length.")
    return length


def _whole_shape(net: Network, x: Tensor, shape: Tensor, zero_is_placeholder: bool) -> Tensor:
    """The shape with what 0 and -1 in it mean."""
    length = _vector_of(shape)
    wide = net.cast(shape, to="int64") if shape.dtype != "int64" else shape
    if zero_is_placeholder:
        wide = net.where(net.equal(wide, 0), net.dims(values=[*x.shape, *[0] * length][:length]), wide)
    is_open = net.equal(wide, -1)
    known = net.reduce_prod(net.where(is_open, 1, wide), axes=[0], keep=False)
    count = net.reduce_prod(net.dims(values=list(x.shape)), axes=[0], keep=False)
    return net.where(is_open, net.div(count, net.max(known, 1)), wide)


def sizes_of_tensor(net: Network, shape: Tensor) -> list[Size]:
    """The values of a vector as sizes, which a run tells."""
    _vector_of(shape)
    names = [Size(f"{shape.name.replace('/', '_').replace('.', '_')}_{i}") for i in range(shape.shape[0])]
    net.bind(shape, symbols=names)
    return names


@function
def expand_dims(net: Network, input: Any, dim: int | Sequence[int]) -> Any:
    """Axes of size 1 put in. The positions are those in the result."""
    x = tensor(net, input, "input")
    count = len(dim) if isinstance(dim, (list, tuple)) else 1
    places = axes_of(x, dim, rank=x.ndim + count)
    left = iter(x.shape)
    return net.reshape(x, shape=[1 if i in places else next(left) for i in range(x.ndim + count)])


@function
def expand(net: Network, input: Any, expand_shape: Any) -> Any:
    """Axes of size 1 repeated to the sizes of expand_shape, which may be a tensor; -1 keeps a size. Missing axes come in front."""
    x = tensor(net, input, "input")
    if isinstance(expand_shape, Tensor):
        return net.expand(x, shape=sizes_of_tensor(net, expand_shape))
    sizes = list(expand_shape)
    lead = len(sizes) - x.ndim
    if lead < 0:
        raise ArgumentError(f"the number of sizes provided ({len(sizes)}) must be greater or equal to the number of dimensions in the tensor ({x.ndim})",
                            hint="Give a size for each axis.")
    for i, size in enumerate(sizes):
        if isinstance(size, int) and size == -1:
            if i < lead:
                raise ArgumentError(f"the expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {i}", hint="Give the size.")
            sizes[i] = x.shape[i - lead]
    return net.expand(x, shape=sizes)


@function
def permute(net: Network, input: Any, dims: Sequence[int]) -> Any:
    """The axes in another order: axis i of the result is axis dims[i] of input."""
    x = tensor(net, input, "input")
    order = axes_of(x, list(dims), "dims")
    if len(order) != x.ndim:
        raise ArgumentError(f"dims has {len(order)} entries, but tensor '{x.name}' has rank {x.ndim}.", hint="Name every axis once.")
    return net.transpose(x, order=order)


@function
def transpose(net: Network, input: Any, dim0: int, dim1: int) -> Any:
    """Two axes change places."""
    x = tensor(net, input, "input")
    order = list(range(x.ndim))
    first, second = axis_of(x, dim0, "dim0"), axis_of(x, dim1, "dim1")
    order[first], order[second] = second, first
    return net.transpose(x, order=order)


@function
def shape(net: Network, input: Any, dim: int | None = None) -> Any:
    """The sizes as a vector of int64; of one axis a number of rank 0."""
    x = tensor(net, input, "input")
    return net.dims(values=list(x.shape)) if dim is None else net.dims(values=[x.shape[axis_of(x, dim)]], scalar=True)


@function
def arange(net: Network, start: Any, end: Any, dtype: Any = "int64") -> Any:
    """start, start + 1, … below end, integers or sizes."""
    for what, given in (("start", start), ("end", end)):
        if isinstance(given, bool) or not isinstance(given, (int, str, Size)):
            raise ArgumentError(f"{what} is {given!r:.60}.", hint="Give an integer, or a size of a tensor.")
    if isinstance(start, int) and isinstance(end, int) and end < start:
        raise ArgumentError("upper bound and lower bound inconsistent with step sign", hint=f"end is {end}, start is {start}.")
    count = Size(str(end)) - start if isinstance(end, str) else end - start
    made = net.range(start=start, count=count, step=1)
    return made if dtype_name(dtype) == "int64" else net.cast(made, to=dtype_name(dtype))


@function
def concat(net: Network, inputs: Sequence[Any], dim: int = 0) -> Any:
    """Tensors one after the other along an axis. Integers and tensors of rank 0 are taken as one element."""
    others = [one.dtype for one in inputs if isinstance(one, Tensor)]
    parts = []
    for one in inputs:
        x = net.add_constant([one]) if isinstance(one, int) else tensor(net, one, "an input")
        if isinstance(one, int) and others and x.dtype != others[0]:
            x = net.cast(x, to=others[0])
        parts.append(net.reshape(x, shape=[1]) if x.ndim == 0 else x)
    if not parts:
        raise ArgumentError("concat is given no tensors.", hint="Give one or more.")
    return net.concat(parts, axis=axis_of(parts[0], dim))


@function
def slice(net: Network, input: Any, starts: Sequence[Any], sizes: Sequence[Any]) -> Any:
    """sizes[i] elements from starts[i] on along axis i."""
    x = tensor(net, input, "input")
    return net.slice(x, start=list(starts), size=list(sizes), step=[1] * x.ndim)


@function
def split(net: Network, tensor: Any, split_size_or_sections: int | Sequence[int], dim: int = 0) -> Any:
    """Pieces of this size along an axis, which it must divide; or of these sizes, which must add up to the axis."""
    x = _operand(net, tensor, "tensor")
    axis = axis_of(x, dim)
    size = x.shape[axis]
    if not isinstance(size, int):
        raise ArgumentError(f"axis {axis} of tensor '{x.name}' is {size}, and has no pieces that are known now.", hint="Use slice.")
    if isinstance(split_size_or_sections, int):
        piece = split_size_or_sections
        if piece < 1 or size % piece != 0:
            raise ArgumentError(f"split size {piece} does not divide axis {axis} of tensor '{x.name}', which has {size} elements.", hint="Give a divisor, or a list of sizes.")
        sections = [piece] * (size // piece)
    else:
        sections = list(split_size_or_sections)
        if any(one < 0 for one in sections) or sum(sections) != size:
            raise ArgumentError(f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {axis}), but got split_sizes={sections}",
                                hint="Give sizes that fill the axis.")
    return _pieces(net, x, axis, sections)


@function
def chunk(net: Network, tensor: Any, chunks: int, dim: int = 0) -> Any:
    """So many equal pieces along an axis, which the number must divide."""
    x = _operand(net, tensor, "tensor")
    axis = axis_of(x, dim)
    size = x.shape[axis]
    if not isinstance(size, int) or chunks < 1 or size % chunks != 0:
        raise ArgumentError(f"{chunks} chunks do not divide axis {axis} of tensor '{x.name}', which has {size} elements.", hint="Give a divisor, or use split.")
    return _pieces(net, x, axis, [size // chunks] * chunks)


def _pieces(net: Network, x: Tensor, axis: int, sections: Sequence[int]) -> tuple[Tensor, ...]:
    made = []
    start = 0
    for size in sections:
        starts, sizes = [0] * x.ndim, list(x.shape)
        starts[axis], sizes[axis] = start, size
        made.append(net.slice(x, start=starts, size=sizes, step=[1] * x.ndim))
        start += size
    return tuple(made)


@function
def flip(net: Network, input: Any, dims: int | Sequence[int]) -> Any:
    """The elements in reverse order along these axes."""
    x = tensor(net, input, "input")
    axes = axes_of(x, dims, "dims")
    return net.slice(x, start=[size - 1 if i in axes else 0 for i, size in enumerate(x.shape)], size=list(x.shape),
                     step=[-1 if i in axes else 1 for i in range(x.ndim)])


@function
def select(net: Network, input: Any, dim: int, index: Any) -> Any:
    """One element of an axis, which goes. index: an integer, or a tensor of one."""
    x = tensor(net, input, "input")
    axis = axis_of(x, dim)
    if isinstance(index, int):
        return x[tuple([builtins.slice(None)] * axis + [index])]
    at = tensor(net, index, "index")
    return net.gather(x, net.reshape(at, shape=[]) if at.ndim else at, axis=axis)


@function
def index_select(net: Network, input: Any, dim: int, index: Any) -> Any:
    """The elements of an axis at these places, a vector of them."""
    x = tensor(net, input, "input")
    at = tensor(net, index, "index")
    if at.ndim > 1:
        raise ArgumentError(f"index_select(): Index is supposed to be a vector, but got dim: {at.ndim}", hint="Give a vector.")
    return net.gather(x, net.reshape(at, shape=[1]) if at.ndim == 0 else at, axis=axis_of(x, dim))


@function
def gather(net: Network, input: Any, dim: int, indices: Any) -> Any:
    """For each place of indices the element of input there, but with the index along dim: torch.gather. An integer is one index."""
    x = tensor(net, input, "input")
    axis = axis_of(x, dim)
    at = net.add_constant([indices]) if isinstance(indices, int) else tensor(net, indices, "indices")
    if isinstance(indices, int):
        at = net.reshape(at, shape=[1] * x.ndim)
    if at.ndim != x.ndim:
        raise ArgumentError("Index tensor must have the same number of dimensions as input tensor", hint=f"indices have rank {at.ndim}, input has rank {x.ndim}.")
    return net.gather_elements(x, at, axis=axis)


@function
def where(net: Network, condition: Any, input: Any, other: Any) -> Any:
    """input where the condition holds, else other; all three broadcast."""
    return net.where(tensor(net, condition, "condition"), input, other)


def expect_room(x: Tensor, before: Sequence[Any], after: Sequence[Any], mode: str) -> None:
    """What PyTorch refuses: paddings that reflect or wrap around more than the axis holds."""
    for axis, size in reversed(list(enumerate(x.shape))):
        most = builtins.max(before[axis], after[axis])
        if not isinstance(size, int) or most < 1:
            continue
        if mode == "reflect" and most >= size:
            raise ArgumentError("Padding size should be less than the corresponding input dimension, but got: padding "
                                f"({before[axis]}, {after[axis]}) at dimension {axis} of input {list(x.shape)}", hint="Pad less, or twice.")
        if mode == "circular" and most > size:
            raise ArgumentError("Padding value causes wrapping around more than once.", hint="Pad less, or twice.")


@function
def pad(net: Network, input: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Any:
    """torch.nn.functional.pad: (before, after) of the last axis, then of the one before, …; negative ones crop.

    mode: 'constant', 'reflect', 'replicate' or 'circular'.
    """
    x = tensor(net, input, "input")
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode not in modes:
        raise ArgumentError(f"mode is {mode!r:.60}.", hint=f"It is one of {', '.join(modes)}.")
    if len(pad) % 2 != 0 or len(pad) > 2 * x.ndim:
        raise ArgumentError(f"Padding length must be divisible by 2 and at most twice the number of dimensions of the input, found {len(pad)} for rank {x.ndim}.",
                            hint="Give two numbers for each axis, from the last on.")
    before, after = [0] * x.ndim, [0] * x.ndim
    for i in range(len(pad) // 2):
        before[x.ndim - 1 - i], after[x.ndim - 1 - i] = pad[2 * i], pad[2 * i + 1]
    expect_room(x, before, after, mode)
    return net.pad(x, pre=before, post=after, mode=modes[mode], value=0.0 if value is None else float(value))

