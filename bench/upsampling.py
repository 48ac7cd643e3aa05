"""The ways to double an image's sides, at equal output: what a model's author chooses between (docs/guides/upsampling.md)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

CONV = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


class Shuffle(nn.Module):
    """[N, C 2^r, *sides] → [N, C, *(2 sides)]: PixelShuffle in any number of dimensions r (Shi et al., arXiv:1609.05158)."""

    def __init__(self, rank: int):
        super().__init__()
        self.rank = rank

    def forward(self, x):
        if self.rank == 2:
            return nn.functional.pixel_shuffle(x, 2)
        channels, sides, r = x.shape[1] >> self.rank, x.shape[2:], self.rank
        x = x.reshape(x.shape[0], channels, *[2] * r, *sides)
        order = [axis for side in range(r) for axis in (2 + r + side, 2 + side)]
        return x.permute(0, 1, *order).reshape(x.shape[0], channels, *(2 * side for side in sides))


@dataclasses.dataclass(frozen=True)
class Place:
    """Where in a network the sides are doubled."""

    name: str
    in_channels: int
    out_channels: int
    input: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.input)


PLACES = (Place("deep in a decoder", 512, 256, (16, 16)), Place("middle of a decoder", 128, 64, (64, 64)), Place("head of a super-resolution network", 56, 3, (180, 320)),
          Place("vocoder", 256, 128, (2048,)), Place("decoder of a volume", 64, 32, (24, 24, 24)))


def _transposed(kernel: int, padding: int, extra: int) -> Callable[[Place], nn.Module]:
    return lambda place: TRANSPOSED[place.rank](place.in_channels, place.out_channels, kernel, 2, padding, extra)


def _resized(linear: bool) -> Callable[[Place], nn.Module]:
    def make(place: Place) -> nn.Module:
        up = nn.Upsample(scale_factor=2, mode=LINEAR[place.rank], align_corners=False) if linear else nn.Upsample(scale_factor=2)
        return nn.Sequential(up, CONV[place.rank](place.in_channels, place.out_channels, 3, padding=1))

    return make


def _shuffled(place: Place) -> nn.Module:
    return nn.Sequential(CONV[place.rank](place.in_channels, place.out_channels << place.rank, 3, padding=1), Shuffle(place.rank))


FORMS: dict[str, Callable[[Place], nn.Module]] = {
    "transposed k2 s2": _transposed(2, 0, 0),
    "transposed k3 s2": _transposed(3, 1, 1),
    "transposed k4 s2": _transposed(4, 1, 0),
    "nearest, conv k3": _resized(linear=False),
    "linear, conv k3": _resized(linear=True),
    "conv k3, shuffle": _shuffled,
}


def make(place: Place, form: str) -> nn.Module:
    torch.manual_seed(1)
    return FORMS[form](place).eval()


def inputs(place: Place) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(1).standard_normal((1, place.in_channels, *place.input), dtype=np.float32)}


def products(place: Place, form: str) -> float:
    """FLOPs of the convolution, two for each product, its border counted as if it were inside."""
    taps_of_output = {"transposed k2 s2": 1, "transposed k3 s2": 1.5, "transposed k4 s2": 2}.get(form, 3) ** place.rank
    outputs = float(np.prod(place.input)) * 2**place.rank
    return 2 * place.in_channels * place.out_channels * outputs * taps_of_output
