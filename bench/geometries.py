"""Transposed convolutions drawn by a seed from the families that deployed networks have, so that nothing can be tuned to a list."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

from layers import Layer

MOST_FLOPS = 4e9  # so that a hundred of them take minutes, not hours


def _channels(rng: random.Random, low: int, high: int) -> int:
    """Mostly a multiple of 8, as networks have them; now and then any number."""
    width = round(2 ** rng.uniform(math.log2(low), math.log2(high)))
    return max(1, width if rng.random() < 0.2 else -(-width // 8) * 8)


def _sides(rng: random.Random, rank: int, low: int, high: int) -> tuple[int, ...]:
    first = round(2 ** rng.uniform(math.log2(low), math.log2(high)))
    return tuple(max(1, round(first * rng.uniform(0.7, 1.4))) for _ in range(rank))


def _audio(rng: random.Random) -> dict:
    stride = rng.choice((2, 2, 3, 4, 5, 8, 10))
    kernel = stride * 2 if rng.random() < 0.6 else stride * rng.choice((1, 2, 3)) + rng.randrange(stride)
    pad = (kernel - stride) // 2 if kernel >= stride else 0
    extra = min(stride - 1, max(0, stride - kernel + 2 * pad))
    width = _channels(rng, 32, 1024)
    return {"in_channels": width, "out_channels": max(1, width // 2), "input": (round(2 ** rng.uniform(5, 14)),), "kernel": (kernel,), "stride": (stride,), "padding": (pad,),
            "output_padding": (extra,)}


def _image(rng: random.Random, rank: int) -> dict:
    kernel, stride, pad, extra = rng.choice(((4, 2, 1, 0), (4, 2, 1, 0), (2, 2, 0, 0), (2, 2, 0, 0), (3, 2, 1, 1), (3, 2, 1, 1), (3, 2, 0, 0), (5, 2, 2, 1), (3, 1, 1, 0), (8, 4, 2, 0), (6, 3, 1, 0)))
    width = _channels(rng, 16, 1024 if rank == 2 else 320)
    out = rng.choice((width, width // 2, width // 2, width // 4)) or 1
    sides = _sides(rng, rank, 4, 256) if rank == 2 else _sides(rng, rank, 3, 48)
    return {"in_channels": width, "out_channels": out, "input": sides, "kernel": (kernel,) * rank, "stride": (stride,) * rank, "padding": (pad,) * rank, "output_padding": (extra,) * rank}


def _head(rng: random.Random) -> dict:
    kernel, stride, pad, extra = rng.choice(((4, 2, 1, 0), (9, 2, 4, 1), (9, 3, 4, 2), (9, 4, 4, 3), (3, 2, 1, 1), (2, 2, 0, 0)))
    return {"in_channels": _channels(rng, 16, 128), "out_channels": rng.choice((1, 1, 2, 3, 3, 4)), "input": _sides(rng, 2, 32, 512), "kernel": (kernel,) * 2, "stride": (stride,) * 2,
            "padding": (pad,) * 2, "output_padding": (extra,) * 2}


def _depthwise(rng: random.Random) -> dict:
    rank = rng.choice((1, 2, 2, 3))
    kernel, stride = rng.choice(((4, 2), (3, 2), (12, 2), (2, 2), (8, 4))) if rank == 1 else rng.choice(((4, 2), (3, 2), (2, 2)))
    pad = (kernel - stride) // 2
    width = _channels(rng, 16, 512)
    sides = (round(2 ** rng.uniform(8, 14)),) if rank == 1 else _sides(rng, rank, 8, 128 if rank == 2 else 32)
    return {"in_channels": width, "out_channels": width, "groups": width, "input": sides, "kernel": (kernel,) * rank, "stride": (stride,) * rank, "padding": (pad,) * rank,
            "output_padding": (0,) * rank}


def _grouped(rng: random.Random) -> dict:
    made = _image(rng, 2)
    groups = rng.choice((2, 4, 8))
    return made | {"groups": groups, "in_channels": -(-made["in_channels"] // groups) * groups, "out_channels": -(-made["out_channels"] // groups) * groups}


def _dilated(rng: random.Random) -> dict:
    rank = rng.choice((1, 2))
    kernel, dilation = rng.choice((3, 3, 5)), rng.choice((2, 3, 5))
    width = _channels(rng, 8, 128)
    sides = (round(2 ** rng.uniform(6, 13)),) if rank == 1 else _sides(rng, 2, 8, 96)
    return {"in_channels": width, "out_channels": width, "input": sides, "kernel": (kernel,) * rank, "stride": (rng.choice((1, 1, 2)),) * rank, "dilation": (dilation,) * rank,
            "padding": (dilation * (kernel - 1) // 2,) * rank, "output_padding": (0,) * rank}


FAMILIES = {"audio": (_audio, 6), "image": (lambda rng: _image(rng, 2), 7), "volume": (lambda rng: _image(rng, 3), 3), "head": (_head, 3), "depthwise": (_depthwise, 2),
            "grouped": (_grouped, 1), "dilated": (_dilated, 1)}  # how a layer is drawn, and how many of twenty-three


def draw_one(rng: random.Random, families: Iterable[str], name: object) -> Layer | None:
    """Of one of the families, by their shares; nothing if it is too large or has no output."""
    makers, shares = zip(*(FAMILIES[family] for family in families), strict=True)
    made = {"groups": 1, "batch": rng.choice((1, 1, 1, 1, 2, 4)), "bias": rng.random() < 0.7, **rng.choices(makers, shares)[0](rng)}
    made.setdefault("dilation", (1,) * len(made["input"]))
    axes = "x".join(map(str, made["input"]))
    words = f"{name}: {made['in_channels']}>{made['out_channels']}{'/' + str(made['groups']) if made['groups'] > 1 else ''} {axes} k{made['kernel'][0]} s{made['stride'][0]}"
    layer = Layer(name=words, **made)
    return layer if min(layer.output) > 0 and layer.flops <= MOST_FLOPS and layer.bytes_moved(4) < 1 << 29 else None


def draw(seed: int, count: int) -> list[Layer]:
    rng, out = random.Random(seed), []
    while len(out) < count:
        layer = draw_one(rng, FAMILIES, len(out))
        if layer is not None:
            out.append(layer)
    return out
