"""Every way to write a transposed convolution in PyTorch: the lattice of its parameters, drawn by a seed.

    {1,2,3}-D × stride × padding × output_padding × dilation × groups × bias × batched × memory format × dtype × output_size × open sizes
"""
from __future__ import annotations

import dataclasses
import random

import torch
import torch.nn.functional as F
from batches import Use
from torch import nn

CALLS = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
LAYERS = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
CHANNELS_LAST = {2: torch.channels_last, 3: torch.channels_last_3d}
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@dataclasses.dataclass(frozen=True)
class Geometry:
    """One case. Per-axis values are tuples; `spell_short` writes one number where all axes are equal."""

    axes: int
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    output_padding: tuple[int, ...]
    dilation: tuple[int, ...]
    kernel: tuple[int, ...]
    size: tuple[int, ...]
    groups: int
    inputs: int  # channels of one group
    outputs: int
    batch: int  # 0: unbatched
    bias: bool
    dtype: torch.dtype
    channels_last: bool
    strided: bool  # every second element of a larger tensor
    constant: bool  # the weight is of the program, not an input
    open_sizes: bool
    wish: str  # '': F.conv_transposeNd; 'layer': nn.ConvTransposeNd; 'output_size': the layer's, read off another tensor
    spell_short: bool

    def output_size(self, axis: int, size: int | None = None) -> int:
        size = self.size[axis] if size is None else size
        return (size - 1) * self.stride[axis] - 2 * self.padding[axis] + self.dilation[axis] * (self.kernel[axis] - 1) + self.output_padding[axis] + 1

    def label(self) -> str:
        places = "x".join
        words = [f"{self.axes}d", f"i{places(map(str, self.size))}", f"k{places(map(str, self.kernel))}", f"s{places(map(str, self.stride))}",
                 f"p{places(map(str, self.padding))}", f"o{places(map(str, self.output_padding))}", f"d{places(map(str, self.dilation))}", f"g{self.groups}",
                 f"c{self.inputs}-{self.outputs}", f"n{self.batch}", str(self.dtype).removeprefix("torch.")]
        flags = {"bias": self.bias, "channels-last": self.channels_last, "strided": self.strided, "constant": self.constant, "open": self.open_sizes, "short": self.spell_short}
        return " ".join(words + [name for name, set_ in flags.items() if set_] + ([self.wish] if self.wish else []))


def draw(rng: random.Random) -> Geometry:
    axes = rng.choice((1, 2, 2, 3))
    equal = rng.random() < 0.5

    def each(values):
        return (rng.choice(values),) * axes if equal else tuple(rng.choice(values) for _ in range(axes))

    stride, dilation, kernel = each((1, 2, 2, 3, 4)), each((1, 1, 2, 3)), each((1, 2, 3, 4, 5))
    padding = each((0, 0, 1, 2, 3))
    output_padding = tuple(rng.randrange(max(s, d)) for s, d in zip(stride, dilation)) if rng.random() < 0.6 else (0,) * axes
    if equal:
        output_padding = (output_padding[0],) * axes
    depthwise = rng.random() < 0.2
    groups = rng.choice((2, 4, 6, 16)) if depthwise else rng.choice((1, 1, 1, 2, 3))
    batch = rng.choice((0, 1, 2, 3))
    channels_last = axes > 1 and batch > 0 and rng.random() < 0.3
    return Geometry(axes, stride, padding, output_padding, dilation, kernel, each((1, 2, 3, 4, 5, 7)), groups, 1 if depthwise else rng.choice((1, 2, 3, 5, 8, 17)),
                    1 if depthwise else rng.choice((1, 2, 3, 4, 9, 16)), batch, rng.random() < 0.6, rng.choice(DTYPES), channels_last,
                    not channels_last and rng.random() < 0.2, rng.random() < 0.6, rng.random() < 0.2, rng.choice(("", "", "layer", "output_size")), rng.random() < 0.5)


def short(g: Geometry, values: tuple[int, ...]):
    return values[0] if g.spell_short and len(set(values)) == 1 else values


def operand(g: Geometry, generator: torch.Generator, size: tuple[int, ...], batch: int) -> torch.Tensor:
    shape = (*([batch] if batch else []), g.groups * g.inputs, *size)
    if g.strided:
        doubled = (*shape[:-1], 2 * shape[-1])
        return torch.randn(doubled, generator=generator).to(g.dtype)[..., ::2]
    x = torch.randn(shape, generator=generator).to(g.dtype)
    return x.to(memory_format=CHANNELS_LAST[g.axes]) if g.channels_last else x


def use_of(g: Geometry, seed: int) -> Use:
    generator = torch.Generator().manual_seed(seed)
    size = tuple(max(2, s) for s in g.size) if g.open_sizes else g.size  # PyTorch fixes an open axis that has one element
    batch = max(2, g.batch) if g.open_sizes and g.batch else g.batch
    grown = tuple(s + 1 + place for place, s in enumerate(size))
    weight = torch.randn((g.groups * g.inputs, g.outputs, *g.kernel), generator=generator).to(g.dtype)
    fixed = [weight, *([torch.randn(g.groups * g.outputs, generator=generator).to(g.dtype)] if g.bias else [])]

    def operands(sizes: tuple[int, ...], count: int, more: int) -> list[torch.Tensor]:
        given = [operand(g, generator, sizes, count), *fixed]
        if g.wish == "output_size":  # the skip connection, of which the shape alone is read
            wished = [g.output_size(axis, sizes[axis]) - g.output_padding[axis] + (g.output_padding[axis] + more) % g.stride[axis] for axis in range(g.axes)]
            given.append(torch.zeros((*([count] if count else []), 1, *(max(0, w) for w in wished))))
        return given

    layer = None
    if g.wish:
        layer = LAYERS[g.axes](g.groups * g.inputs, g.groups * g.outputs, short(g, g.kernel), short(g, g.stride), short(g, g.padding), 0 if g.wish == "output_size" else short(g, g.output_padding),
                               g.groups, g.bias, short(g, g.dilation), device="meta", dtype=g.dtype)

    def call(x, weight, *rest):
        bias = rest[0] if g.bias else None
        if layer is None:
            return CALLS[g.axes](x, weight, bias, short(g, g.stride), short(g, g.padding), short(g, g.output_padding), g.groups, short(g, g.dilation))
        parameters = {"weight": weight} | ({"bias": bias} if g.bias else {})
        named = {"output_size": rest[-1].shape[-g.axes :]} if g.wish == "output_size" else {}
        return torch.func.functional_call(layer, parameters, (x,), named)

    given = operands(size, batch, 0)
    open_axes: dict[int, tuple[int, ...]] = {}
    others = None
    if g.open_sizes:
        channel = 1 if batch else 0
        open_axes = {place: tuple(axis for axis in range(given[place].dim()) if axis != channel) for place in (0, len(given) - 1)[: 2 if g.wish == "output_size" else 1]}
        others = operands(grown, batch + 1 if batch else 0, 1)
    return Use(g.label(), call, given, frozenset(range(1, 1 + len(fixed))) if g.constant else frozenset(), open_axes, others)


def cases(seed: int, count: int) -> list[Geometry]:
    """`count` different ones."""
    rng, found = random.Random(seed), {}
    while len(found) < count:
        geometry = draw(rng)
        found[geometry.label()] = geometry
    return list(found.values())
