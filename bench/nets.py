"""Whole networks that upsample, at the sizes at which they are used, with weights as after training (tests/python/networks.py has most of them)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import networks
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Snake(nn.Module):
    """x + sin(a x)^2 / a (Ziyin et al. 2020)."""

    def __init__(self, width: int):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, width, 1))

    def forward(self, x):
        return x + (self.alpha + 1e-9).reciprocal() * torch.sin(self.alpha * x).pow(2)


class DacUnit(nn.Module):
    def __init__(self, width: int, dilation: int):
        super().__init__()
        self.body = nn.Sequential(Snake(width), nn.Conv1d(width, width, 7, dilation=dilation, padding=3 * dilation), Snake(width), nn.Conv1d(width, width, 1))

    def forward(self, x):
        return x + self.body(x)


def dac_decoder(latent: int = 1024, width: int = 1536, rates: tuple[int, ...] = (8, 8, 4, 2)) -> nn.Module:
    """The decoder of the Descript Audio Codec, 44.1 kHz (Kumar et al. 2023)."""
    layers: list[nn.Module] = [nn.Conv1d(latent, width, 7, padding=3)]
    for i, rate in enumerate(rates):
        inner, outer = width >> i, width >> (i + 1)
        layers += [Snake(inner), nn.ConvTranspose1d(inner, outer, 2 * rate, rate, math.ceil(rate / 2), output_padding=rate % 2), *(DacUnit(outer, d) for d in (1, 3, 9))]
    return nn.Sequential(*layers, Snake(outer), nn.Conv1d(outer, 1, 7, padding=3), nn.Tanh())


class SamAttention(nn.Module):
    def __init__(self, width: int, inner: int, heads: int = 8):
        super().__init__()
        self.q, self.k, self.v, self.out = nn.Linear(width, inner), nn.Linear(width, inner), nn.Linear(width, inner), nn.Linear(inner, width)
        self.heads = heads

    def forward(self, q, k, v):
        q, k, v = (layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer, x in ((self.q, q), (self.k, k), (self.v, v)))
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class SamBlock(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.own, self.to_image, self.to_tokens = SamAttention(width, width), SamAttention(width, width // 2), SamAttention(width, width // 2)
        self.mlp = nn.Sequential(nn.Linear(width, 2048), nn.ReLU(), nn.Linear(2048, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))

    def forward(self, tokens, image, place):
        tokens = self.norms[0](tokens + self.own(tokens, tokens, tokens))
        tokens = self.norms[1](tokens + self.to_image(tokens, image + place, image))
        tokens = self.norms[2](tokens + self.mlp(tokens))
        return tokens, self.norms[3](image + self.to_tokens(image + place, tokens, tokens))


class ChannelNorm(nn.Module):
    """Layer normalisation over the channels of an image."""

    def __init__(self, width: int):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        spread = (x - mean).pow(2).mean(1, keepdim=True)
        return self.weight[:, None, None] * ((x - mean) / torch.sqrt(spread + 1e-6)) + self.bias[:, None, None]


class SamDecoder(nn.Module):
    """The mask decoder of Segment Anything (Kirillov et al. 2023): two blocks of attention both ways, two k2 s2 transposed convolutions, masks by product."""

    def __init__(self, width: int = 256, masks: int = 4):
        super().__init__()
        self.tokens = nn.Parameter(torch.randn(1, masks + 1, width, generator=torch.Generator().manual_seed(3)))
        self.blocks = nn.ModuleList(SamBlock(width) for _ in range(2))
        self.last, self.norm = SamAttention(width, width // 2), nn.LayerNorm(width)
        self.up = nn.Sequential(nn.ConvTranspose2d(width, width // 4, 2, 2), ChannelNorm(width // 4), nn.GELU(), nn.ConvTranspose2d(width // 4, width // 8, 2, 2), nn.GELU())
        self.heads = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width // 8)) for _ in range(masks))

    def forward(self, image, place, prompts):
        tokens = torch.cat([self.tokens.expand(prompts.shape[0], -1, -1), prompts], 1)
        sides = image.shape[2:]
        flat, places = image.flatten(2).transpose(1, 2), place.flatten(2).transpose(1, 2)
        for block in self.blocks:
            tokens, flat = block(tokens, flat, places)
        tokens = self.norm(tokens + self.last(tokens, flat + places, flat))
        large = self.up(flat.transpose(1, 2).unflatten(2, sides))
        kernels = torch.stack([head(tokens[:, i + 1]) for i, head in enumerate(self.heads)], 1)
        return (kernels @ large.flatten(2)).unflatten(2, large.shape[2:])


def inputs(**shapes: tuple[int, ...]) -> Callable[[], dict[str, np.ndarray]]:
    return lambda: {name: networks.noise(*shape, seed=5).numpy() for name, shape in shapes.items()}


def made(make: Callable[..., nn.Module], *args, **options) -> Callable[[], nn.Module]:
    return functools.partial(_trained, functools.partial(make, *args, **options))


def _trained(make: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(1)  # what `trained_like` leaves as it was made
    return networks.trained_like(make(), 1)


def _initialised() -> nn.Module:
    """With weights as PyTorch begins with: those of `trained_like` make its sines amplify rounding ten-thousandfold, in every system."""
    torch.manual_seed(1)
    return dac_decoder().eval()


NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], dict[str, np.ndarray]]]] = {
    "dcgan": (made(networks.DcganGenerator, width=64), inputs(z=(1, 100, 1, 1))),
    "fsrcnn_x3": (made(networks.Fsrcnn), inputs(y=(1, 1, 180, 320))),
    "pix2pix": (made(networks.pix2pix_generator, 64), inputs(image=(1, 3, 256, 256))),
    "cyclegan": (made(networks.cyclegan_generator, 64, 9), inputs(image=(1, 3, 256, 256))),
    "unet2d": (made(networks.Unet, 2, 3, 2, [64, 128, 256, 512]), inputs(image=(1, 3, 256, 256))),
    "unet3d": (made(networks.Unet, 3, 1, 3, [32, 64, 128, 256]), inputs(volume=(1, 1, 64, 64, 64))),
    "pose_r50": (made(networks.PoseNet, widths=(256, 512, 1024, 2048), depths=(3, 4, 6, 3), stem=64, up=256), inputs(image=(1, 3, 256, 192))),
    "linknet": (made(networks.LinkNet, widths=(64, 128, 256, 512), head=32), inputs(image=(1, 3, 352, 480))),
    "sam_decoder": (made(SamDecoder), inputs(image=(1, 256, 64, 64), place=(1, 256, 64, 64), prompts=(1, 2, 256))),
    "hifigan": (made(networks.HifiGan, width=512), inputs(mel=(1, 80, 100))),
    "dac_decoder": (_initialised, inputs(latent=(1, 1024, 40))),
}
