"""Random small networks that upsample, as PyTorch modules: what nobody chose for us.

A network is grown step by step: a random step is tried on the running value and kept if PyTorch takes it and the sizes stay small. What
grows is a list of steps that `forward` repeats on any input, so that one network exports statically and dynamically.
"""

from __future__ import annotations

import random
from typing import Callable

import torch
from networks import trained_like
from torch import nn
from torch.nn import functional as F

Step = Callable[[torch.Tensor, list[torch.Tensor]], torch.Tensor]

CONV = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
CONV_TRANSPOSE = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
BATCH_NORM = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
INSTANCE_NORM = {1: nn.InstanceNorm1d, 2: nn.InstanceNorm2d, 3: nn.InstanceNorm3d}
MAX_POOL = {1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d}
AVG_POOL = {1: nn.AvgPool1d, 2: nn.AvgPool2d, 3: nn.AvgPool3d}
ADAPTIVE = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}
LINEAR_MODE = {1: "linear", 2: "bilinear", 3: "trilinear"}
FUNCTIONAL_TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
MOST_ELEMENTS = {1: 20_000, 2: 40_000, 3: 40_000}


class Snake(nn.Module):
    """x + sin²(a x) / a, the vocoders' activation."""

    def __init__(self, channels: int, rank: int):
        super().__init__()
        self.frequency = nn.Parameter(torch.rand(1, channels, *[1] * rank) + 0.5)

    def forward(self, x):
        return x + torch.sin(self.frequency * x) ** 2 / self.frequency


class ChannelsLast(nn.Module):
    """A module over the last axis, between two permutations."""

    def __init__(self, inner: nn.Module, rank: int):
        super().__init__()
        self.inner = inner
        self.there = [0, *range(2, rank + 2), 1]
        self.back = [0, rank + 1, *range(1, rank + 1)]

    def forward(self, x):
        return self.inner(x.permute(self.there)).permute(self.back)


class Squeeze(nn.Module):
    """Squeeze and excitation: channels weighed by what their means say."""

    def __init__(self, channels: int, rank: int):
        super().__init__()
        self.rank = rank
        self.down = CONV[rank](channels, max(1, channels // 2), 1)
        self.up = CONV[rank](max(1, channels // 2), channels, 1)

    def forward(self, x):
        return x * torch.sigmoid(self.up(F.relu(self.down(ADAPTIVE[self.rank](x, 1)))))


class Modulated(nn.Module):
    """A transposed convolution whose weights depend on the image."""

    def __init__(self, channels: int, out: int, rank: int, kernel: int, stride: int):
        super().__init__()
        self.rank, self.stride = rank, stride
        self.style = nn.Linear(channels, channels)
        self.weight = nn.Parameter(torch.randn(channels, out, *[kernel] * rank) / (channels * kernel**rank / stride**rank) ** 0.5)

    def forward(self, x):
        style = self.style(x.mean(dim=list(range(2, self.rank + 2)))).mean(dim=0) + 1.0
        weight = self.weight * style.reshape([-1, 1] + [1] * self.rank)
        return FUNCTIONAL_TRANSPOSE[self.rank](x, weight, stride=self.stride)


class RandomNetwork(nn.Module):
    """Grows from a seed. `rank` spatial axes; `example` is an input that it was grown on."""

    def __init__(self, seed: int):
        super().__init__()
        self.random = random.Random(seed)
        torch.manual_seed(seed)
        self.rank = self.random.choice([1, 2, 2, 2, 3])
        sizes = [self.random.randint(*{1: (12, 64), 2: (6, 16), 3: (4, 7)}[self.rank]) for _ in range(self.rank)]
        self.parts = nn.ModuleList()
        self.steps: list[tuple[str, Step]] = []
        self.example = torch.randn(self.random.choice([1, 1, 2, 3]), self.random.choice([1, 2, 3, 4, 8, 12, 16]), *sizes)
        self.grow(self.random.randint(4, 14))
        trained_like(self, seed)
        self.train(False)

    def forward(self, x):
        skips: list[torch.Tensor] = []
        for _, step in self.steps:
            x = step(x, skips)
        return x

    def text(self) -> str:
        return ", ".join(name for name, _ in self.steps)

    def grow(self, count: int) -> None:
        x, skips, upsampled = self.example, [], False
        self.train(False)
        for _ in range(count * 20):
            if len(self.steps) >= count and upsampled:
                return
            choice = self.random.choice(STEPS if self.random.random() > 0.25 else UPSAMPLING)
            known = len(self.parts)
            try:
                made = choice(self, x)
                if made is None:
                    continue
                trial = list(skips)
                with torch.no_grad():
                    y = made[1](x, trial)
            except (RuntimeError, ValueError, NotImplementedError, AssertionError, IndexError):
                y = None
            small = y is not None and 0 < y.numel() <= MOST_ELEMENTS[self.rank] and 1 <= y.shape[1] <= 64 and y.dim() == x.dim()
            if not small or not bool(torch.isfinite(y).all()):
                del self.parts[known:]
                continue
            self.steps.append(made)
            upsampled |= choice in UPSAMPLING
            x, skips = y, trial

    def part(self, module: nn.Module) -> nn.Module:
        module.train(False)
        self.parts.append(module)
        return module

    def plain(self, module: nn.Module) -> tuple[str, Step]:
        part = self.part(module)
        return str(module).split("\n")[0], lambda x, skips: part(x)

    def axes(self, low: int, high: int) -> list[int]:
        """One number for all axes, or one for each."""
        if self.random.random() < 0.6:
            return [self.random.randint(low, high)] * self.rank
        return [self.random.randint(low, high) for _ in range(self.rank)]

    def groups(self, channels: int, out: int) -> int:
        return self.random.choice([g for g in range(1, channels + 1) if channels % g == 0 and out % g == 0])

    def channels(self) -> int:
        return self.random.choice([1, 2, 3, 4, 6, 8, 12, 16, 17, 20, 24, 32])


def conv(net: RandomNetwork, x: torch.Tensor):
    out, kernel = net.channels(), net.axes(1, 5)
    groups = net.groups(x.shape[1], out) if net.random.random() < 0.3 else 1
    mode = net.random.choice(["zeros"] * 5 + ["reflect", "replicate", "circular"])
    stride, dilation = net.axes(1, 2) if net.random.random() < 0.3 else 1, net.axes(1, 2) if net.random.random() < 0.2 else 1
    padding = "same" if stride == 1 and net.random.random() < 0.3 else [net.random.randint(0, k) for k in kernel]
    return net.plain(CONV[net.rank](x.shape[1], out, kernel, stride, padding, dilation, groups, net.random.random() < 0.7, mode))


def depthwise(net: RandomNetwork, x: torch.Tensor):
    kernel = net.random.choice([3, 5])
    return net.plain(CONV[net.rank](x.shape[1], x.shape[1] * net.random.choice([1, 1, 2]), kernel, padding=kernel // 2, groups=x.shape[1]))


def deconv(net: RandomNetwork, x: torch.Tensor):
    out, kernel, stride = net.channels(), net.axes(1, 6), net.axes(1, 4)
    dilation = net.axes(1, 3) if net.random.random() < 0.2 else [1] * net.rank
    groups = net.groups(x.shape[1], out) if net.random.random() < 0.3 else 1
    padding = [net.random.randint(0, max(1, d * (k - 1))) for d, k in zip(dilation, kernel)]
    # ONNX Runtime takes less than the stride only; now and then PyTorch's own rule.
    extra = [net.random.randint(0, (max(s, d) if net.random.random() < 0.1 else s) - 1) for s, d in zip(stride, dilation)]
    if net.random.random() < 0.5:
        extra = [0] * net.rank
    return net.plain(CONV_TRANSPOSE[net.rank](x.shape[1], out, kernel, stride, padding, extra, groups, net.random.random() < 0.7, dilation))


def usual_deconv(net: RandomNetwork, x: torch.Tensor):
    kernel, stride, padding, extra = net.random.choice([(4, 2, 1, 0), (2, 2, 0, 0), (3, 2, 1, 1), (5, 2, 2, 1), (8, 4, 2, 0), (9, 3, 4, 2), (3, 1, 1, 0)])
    return net.plain(CONV_TRANSPOSE[net.rank](x.shape[1], net.channels(), kernel, stride, padding, extra))


def depthwise_deconv(net: RandomNetwork, x: torch.Tensor):
    stride = net.random.choice([2, 3])
    return net.plain(CONV_TRANSPOSE[net.rank](x.shape[1], x.shape[1] * net.random.choice([1, 1, 2]), 2 * stride, stride, stride // 2, groups=x.shape[1]))


def sized_deconv(net: RandomNetwork, x: torch.Tensor):
    stride = net.random.choice([2, 3, 4])
    part = net.part(CONV_TRANSPOSE[net.rank](x.shape[1], net.channels(), net.random.randint(2, 5), stride, 1))
    return f"{part} to stride times the size", lambda x, skips: part(x, output_size=[size * stride for size in x.shape[2:]])


def modulated(net: RandomNetwork, x: torch.Tensor):
    return net.plain(Modulated(x.shape[1], net.channels(), net.rank, net.random.randint(2, 4), 2))


def interpolate(net: RandomNetwork, x: torch.Tensor):
    mode = net.random.choice(["nearest", "nearest", LINEAR_MODE[net.rank], LINEAR_MODE[net.rank], "bicubic"])
    corners = None if mode == "nearest" else net.random.random() < 0.5
    factor = net.random.choice([2, 2, 2, 3, 1.5, 4])
    return f"interpolate {mode} x{factor} {corners}", lambda x, skips: F.interpolate(x, scale_factor=factor, mode=mode, align_corners=corners)


def shuffle(net: RandomNetwork, x: torch.Tensor):
    block = net.random.choice([2, 2, 3])
    if net.rank == 2:
        part = net.part(nn.Conv2d(x.shape[1], net.random.choice([1, 3, 4]) * block**2, 3, padding=1))
        return f"conv and pixel shuffle {block}", lambda x, skips: F.pixel_shuffle(part(x), block)
    return None


def unshuffle(net: RandomNetwork, x: torch.Tensor):
    return ("pixel unshuffle 2", lambda x, skips: F.pixel_unshuffle(x, 2)) if net.rank == 2 else None


def norm(net: RandomNetwork, x: torch.Tensor):
    """Of at least 8 numbers each: the difference of two that are nearly the same is nothing but rounding."""
    channels = x.shape[1]
    kind = net.random.choice(["batch", "batch", "batch", "instance", "group", "layer"])
    if kind != "batch" and (channels if kind == "layer" else x[0, 0].numel()) < 8:
        return None
    if kind == "batch":
        return net.plain(BATCH_NORM[net.rank](channels))
    if kind == "instance":
        return net.plain(INSTANCE_NORM[net.rank](channels, affine=net.random.random() < 0.5))
    if kind == "group":
        return net.plain(nn.GroupNorm(net.groups(channels, channels), channels))
    return net.plain(ChannelsLast(nn.LayerNorm(channels), net.rank))


def activation(net: RandomNetwork, x: torch.Tensor):
    made = net.random.choice([
        nn.ReLU, nn.ReLU, nn.ReLU6, lambda: nn.LeakyReLU(0.2), lambda: nn.PReLU(x.shape[1]), nn.PReLU, nn.Sigmoid, nn.Tanh, nn.ELU, nn.SELU, nn.GELU,
        lambda: nn.GELU("tanh"), nn.SiLU, nn.Hardswish, nn.Hardsigmoid, nn.Softplus, nn.Mish, lambda: nn.Softmax(1), lambda: Snake(x.shape[1], net.rank),
        lambda: nn.Hardtanh(-0.5, 0.75), nn.Softsign, nn.CELU, nn.LogSigmoid,
    ])
    return net.plain(made())


def pad(net: RandomNetwork, x: torch.Tensor):
    mode = net.random.choice(["constant", "constant", "reflect", "replicate", "circular"])
    low = -1 if mode == "constant" else 0
    amounts = [net.random.randint(low, 2) for _ in range(2 * net.rank)]
    value = net.random.choice([0.0, 0.0, 0.5]) if mode == "constant" else None
    return f"pad {mode} {amounts} {value}", lambda x, skips: F.pad(x, amounts, mode, value)


def pool(net: RandomNetwork, x: torch.Tensor):
    kernel, stride = net.random.choice([2, 3]), net.random.choice([1, 2, 2])
    ceil, padding = net.random.random() < 0.2, net.random.choice([0, kernel // 2])
    if net.random.random() < 0.5:
        return net.plain(MAX_POOL[net.rank](kernel, stride, padding, net.random.choice([1, 1, 1, 2]), ceil_mode=ceil))
    return net.plain(AVG_POOL[net.rank](kernel, stride, padding, ceil, net.random.random() < 0.5))


def keep(net: RandomNetwork, x: torch.Tensor):
    def step(x, skips):
        skips.append(x)
        return x

    return "keep", step


def join(net: RandomNetwork, x: torch.Tensor):
    """Concatenates a kept value: as it is, or resized, or both cut to what they share."""
    way = net.random.choice(["as it is", "resize", "resize", "linear"])

    def step(x, skips):
        skip = skips.pop()
        if way == "resize":
            x = F.interpolate(x, size=skip.shape[2:], mode="nearest")
        if way == "linear":
            x = F.interpolate(x, size=skip.shape[2:], mode=LINEAR_MODE[net.rank], align_corners=False)
        return torch.cat([skip, x], 1)

    return (f"join {way}", step)


def residual(net: RandomNetwork, x: torch.Tensor):
    kernel = net.random.choice([1, 3])
    part = net.part(nn.Sequential(CONV[net.rank](x.shape[1], x.shape[1], kernel, padding=kernel // 2), BATCH_NORM[net.rank](x.shape[1])))
    factor = net.random.choice([None, 0.2])
    return "residual", (lambda x, skips: F.relu(x + part(x))) if factor is None else (lambda x, skips: x + part(x) * factor)


def gate(net: RandomNetwork, x: torch.Tensor):
    if x.shape[1] % 2 == 1:
        return None

    def step(x, skips):
        a, b = x.chunk(2, 1)
        return a * torch.sigmoid(b)

    return "gate", step


def squeeze(net: RandomNetwork, x: torch.Tensor):
    return net.plain(Squeeze(x.shape[1], net.rank))


def linear(net: RandomNetwork, x: torch.Tensor):
    return net.plain(ChannelsLast(nn.Linear(x.shape[1], net.channels()), net.rank))


def cut(net: RandomNetwork, x: torch.Tensor):
    kind = net.random.choice(["first", "last", "channels", "flip", "every second"])
    steps: dict[str, Step] = {
        "first": lambda x, skips: x[:, :, 1:],
        "last": lambda x, skips: x[..., :-1],
        "channels": lambda x, skips: x[:, 1:],
        "flip": lambda x, skips: torch.flip(x, [2]),
        "every second": lambda x, skips: x[..., ::2],
    }
    return f"cut {kind}", steps[kind]


def arithmetic(net: RandomNetwork, x: torch.Tensor):
    kind = net.random.choice(["scale", "channel scale", "centre", "square", "unit"])
    vector = nn.Parameter(torch.rand(1, x.shape[1], *[1] * net.rank) + 0.5)
    if kind == "channel scale":
        net.register_parameter(f"vector_{len(net.steps)}", vector)
    axes = list(range(2, net.rank + 2))
    steps: dict[str, Step] = {
        "scale": lambda x, skips: x * 0.5 + 0.25,
        "channel scale": lambda x, skips: x * vector,
        "centre": lambda x, skips: x - x.mean(axes, keepdim=True),
        "square": lambda x, skips: torch.sqrt(x * x + 0.1),
        "unit": lambda x, skips: x / torch.sqrt((x * x).mean(1, keepdim=True) + 1e-4),
    }
    return kind, steps[kind]


UPSAMPLING = [deconv, deconv, usual_deconv, usual_deconv, depthwise_deconv, sized_deconv, modulated, interpolate, shuffle]
STEPS = [
    conv, conv, conv, depthwise, *UPSAMPLING, norm, norm, activation, activation, activation, pad, pool, keep, keep, join, join, residual, gate, squeeze,
    linear, cut, arithmetic, unshuffle,
]
