"""Networks of published papers at sizes at which they are used, written down from the papers: what users bring that no package has.

Super-resolution and restoration, segmentation, generators of images and of sound. None of our kernels or passes was made for them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from nets import inputs, made
from torch import nn


def conv(taken: int, given: int, kernel: int = 3, **options) -> nn.Conv2d:
    return nn.Conv2d(taken, given, kernel, padding=options.pop("padding", kernel // 2 * options.get("dilation", 1)), **options)


def shuffled(width: int, scale: int) -> nn.Sequential:
    """Pixel shuffles by 2, or one by 3 (Shi et al. 2016)."""
    steps = [3] if scale == 3 else [2] * (scale.bit_length() - 1)
    return nn.Sequential(*(layer for step in steps for layer in (conv(width, width * step * step), nn.PixelShuffle(step))))


class Residual(nn.Module):
    """x + body(x) * gain."""

    def __init__(self, *body: nn.Module, gain: float = 1.0):
        super().__init__()
        self.body, self.gain = nn.Sequential(*body), gain

    def forward(self, x):
        return x + self.body(x) * self.gain


class Dense(nn.Module):
    """Convolutions each of which reads all images before it; the last one, of `kernel`, gives the block's."""

    def __init__(self, width: int, growth: int, layers: int, last: int, slope: float, gain: float):
        super().__init__()
        self.layers = nn.ModuleList(conv(width + i * growth, growth) for i in range(layers))
        self.last, self.slope, self.gain = conv(width + layers * growth, width, last), slope, gain

    def forward(self, x):
        images = [x]
        for layer in self.layers:
            images.append(F.leaky_relu(layer(torch.cat(images, 1)), self.slope))
        return x + self.last(torch.cat(images, 1)) * self.gain


def rrdb(blocks: int = 3, width: int = 64) -> nn.Module:
    """ESRGAN's generator, x4 (Wang et al. 2018), with fewer of its blocks."""
    body = (Residual(*(Dense(width, 32, 4, 3, 0.2, 0.2) for _ in range(3)), gain=0.2) for _ in range(blocks))
    up = (layer for _ in range(2) for layer in (nn.Upsample(scale_factor=2), conv(width, width), nn.LeakyReLU(0.2)))
    return nn.Sequential(conv(3, width), Residual(*body, conv(width, width)), *up, conv(width, width), nn.LeakyReLU(0.2), conv(width, 3))


class Rdn(nn.Module):
    """Residual dense network, x2 (Zhang et al. 2018), with fewer of its blocks."""

    def __init__(self, blocks: int = 4, width: int = 64):
        super().__init__()
        self.first, self.second = conv(3, width), conv(width, width)
        self.blocks = nn.ModuleList(Dense(width, 64, 4, 1, 0.0, 1.0) for _ in range(blocks))
        self.fuse = nn.Sequential(conv(blocks * width, width, 1), conv(width, width))
        self.up = nn.Sequential(shuffled(width, 2), conv(width, 3))

    def forward(self, x):
        first = self.first(x)
        x, given = self.second(first), []
        for block in self.blocks:
            x = block(x)
            given.append(x)
        return self.up(first + self.fuse(torch.cat(given, 1)))


def edsr(scale: int = 2, blocks: int = 8, width: int = 64) -> nn.Module:
    """EDSR's baseline (Lim et al. 2017), with fewer of its blocks."""
    body = (Residual(conv(width, width), nn.ReLU(), conv(width, width)) for _ in range(blocks))
    return nn.Sequential(conv(3, width), Residual(*body, conv(width, width)), shuffled(width, scale), conv(width, 3))


class ChannelAttention(nn.Module):
    def __init__(self, width: int, inner: int):
        super().__init__()
        self.weigh = nn.Sequential(nn.AdaptiveAvgPool2d(1), conv(width, inner, 1), nn.ReLU(), conv(inner, width, 1), nn.Sigmoid())

    def forward(self, x):
        return x * self.weigh(x)


def rcan(groups: int = 2, blocks: int = 4, width: int = 64) -> nn.Module:
    """RCAN, x4 (Zhang et al. 2018), with fewer of its groups and blocks."""
    block = (lambda: Residual(conv(width, width), nn.ReLU(), conv(width, width), ChannelAttention(width, width // 16)))
    body = (Residual(*(block() for _ in range(blocks)), conv(width, width)) for _ in range(groups))
    return nn.Sequential(conv(3, width), Residual(*body, conv(width, width)), shuffled(width, 4), conv(width, 3))


def srresnet(blocks: int = 6, width: int = 64) -> nn.Module:
    """SRGAN's generator, x4 (Ledig et al. 2017), with fewer of its blocks."""
    body = (Residual(conv(width, width), nn.BatchNorm2d(width), nn.PReLU(), conv(width, width), nn.BatchNorm2d(width)) for _ in range(blocks))
    up = (layer for _ in range(2) for layer in (conv(width, 4 * width), nn.PixelShuffle(2), nn.PReLU()))
    return nn.Sequential(conv(3, width, 9), nn.PReLU(), Residual(*body, conv(width, width), nn.BatchNorm2d(width)), *up, conv(width, 3, 9))


class LapSrn(nn.Module):
    """LapSRN, x4 (Lai et al. 2017): transposed convolutions of the features and of the image."""

    def __init__(self, width: int = 64, layers: int = 5):
        super().__init__()
        self.first = nn.Sequential(conv(1, width), nn.LeakyReLU(0.2))
        level = (lambda: nn.Sequential(*(layer for _ in range(layers) for layer in (conv(width, width), nn.LeakyReLU(0.2))), nn.ConvTranspose2d(width, width, 4, 2, 1), nn.LeakyReLU(0.2)))
        self.levels = nn.ModuleList(level() for _ in range(2))
        self.details = nn.ModuleList(conv(width, 1) for _ in range(2))
        self.images = nn.ModuleList(nn.ConvTranspose2d(1, 1, 4, 2, 1) for _ in range(2))

    def forward(self, x):
        features = self.first(x)
        for level, detail, image in zip(self.levels, self.details, self.images):
            features = level(features)
            x = image(x) + detail(features)
        return x


class ChannelNorm(nn.Module):
    """A layer norm of each pixel's channels."""

    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Gate(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, 1)
        return a * b


class SimpleAttention(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weigh = nn.Sequential(nn.AdaptiveAvgPool2d(1), conv(width, width, 1))

    def forward(self, x):
        return x * self.weigh(x)


def naf_block(width: int) -> nn.Module:
    mix = (ChannelNorm(width), conv(width, 2 * width, 1), conv(2 * width, 2 * width, groups=2 * width), Gate(), SimpleAttention(width), conv(width, width, 1))
    return nn.Sequential(Residual(*mix), Residual(ChannelNorm(width), conv(width, 2 * width, 1), Gate(), conv(width, width, 1)))


class NafNet(nn.Module):
    """NAFNet (Chen et al. 2022), a block at every level."""

    def __init__(self, width: int = 32, levels: int = 3):
        super().__init__()
        self.first, self.last = conv(3, width), conv(width, 3)
        widths = [width << i for i in range(levels)]
        self.down = nn.ModuleList(nn.Sequential(naf_block(each), conv(each, 2 * each, 2, stride=2, padding=0)) for each in widths)
        self.middle = naf_block(width << levels)
        self.up = nn.ModuleList(nn.Sequential(conv(2 * each, 4 * each, 1, bias=False), nn.PixelShuffle(2)) for each in reversed(widths))
        self.blocks = nn.ModuleList(naf_block(each) for each in reversed(widths))

    def forward(self, image):
        x, skips = self.first(image), []
        for down in self.down:
            x = down[0](x)
            skips.append(x)
            x = down[1](x)
        x = self.middle(x)
        for up, block in zip(self.up, self.blocks):
            x = block(up(x) + skips.pop())
        return image + self.last(x)


class TransposedAttention(nn.Module):
    """Attention between channels (Restormer)."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.qkv = nn.Sequential(conv(width, 3 * width, 1, bias=False), conv(3 * width, 3 * width, groups=3 * width, bias=False))
        self.heat, self.out, self.heads = nn.Parameter(torch.ones(heads, 1, 1)), conv(width, width, 1, bias=False), heads

    def forward(self, x):
        height = x.shape[2]
        q, k, v = (part.unflatten(1, (self.heads, -1)).flatten(3) for part in self.qkv(x).chunk(3, 1))
        shares = (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1) * self.heat).softmax(-1)
        return self.out((shares @ v).flatten(1, 2).unflatten(2, (height, -1)))


class GatedFeedForward(nn.Module):
    def __init__(self, width: int, inner: int):
        super().__init__()
        self.into = nn.Sequential(conv(width, 2 * inner, 1, bias=False), conv(2 * inner, 2 * inner, groups=2 * inner, bias=False))
        self.out = conv(inner, width, 1, bias=False)

    def forward(self, x):
        a, b = self.into(x).chunk(2, 1)
        return self.out(F.gelu(a) * b)


def restormer_block(width: int, heads: int) -> nn.Module:
    return nn.Sequential(Residual(ChannelNorm(width), TransposedAttention(width, heads)), Residual(ChannelNorm(width), GatedFeedForward(width, int(2.66 * width))))


class Restormer(nn.Module):
    """Restormer (Zamir et al. 2022) of three levels, a block at each."""

    def __init__(self, width: int = 48):
        super().__init__()
        self.first, self.last = conv(3, width, bias=False), conv(2 * width, 3, bias=False)
        self.one, self.two, self.three = restormer_block(width, 1), restormer_block(2 * width, 2), restormer_block(4 * width, 4)
        self.down = nn.ModuleList(nn.Sequential(conv(each, each // 2, bias=False), nn.PixelUnshuffle(2)) for each in (width, 2 * width))
        self.up = nn.ModuleList(nn.Sequential(conv(each, 2 * each, bias=False), nn.PixelShuffle(2)) for each in (4 * width, 2 * width))
        self.join, self.four, self.five = conv(4 * width, 2 * width, 1, bias=False), restormer_block(2 * width, 2), restormer_block(2 * width, 1)

    def forward(self, image):
        one = self.one(self.first(image))
        two = self.two(self.down[0](one))
        x = self.up[0](self.three(self.down[1](two)))
        x = self.up[1](self.four(self.join(torch.cat((x, two), 1))))
        return image + self.last(self.five(torch.cat((x, one), 1)))


def rebnconv(taken: int, given: int, dilation: int = 1) -> nn.Sequential:
    return nn.Sequential(conv(taken, given, dilation=dilation), nn.BatchNorm2d(given), nn.ReLU())


class Rsu(nn.Module):
    """A U within the U (U2-Net)."""

    def __init__(self, depth: int, taken: int, inner: int, given: int):
        super().__init__()
        self.first = rebnconv(taken, given)
        self.down = nn.ModuleList(rebnconv(given if i == 0 else inner, inner) for i in range(depth - 1))
        self.bottom = rebnconv(inner, inner, 2)
        self.up = nn.ModuleList(rebnconv(2 * inner, given if i == depth - 2 else inner) for i in range(depth - 1))

    def forward(self, x):
        first = x = self.first(x)
        kept = []
        for i, down in enumerate(self.down):
            x = down(F.max_pool2d(x, 2, ceil_mode=True) if i else x)
            kept.append(x)
        x = self.bottom(x)
        for up in self.up:
            skip = kept.pop()
            x = up(torch.cat((F.interpolate(x, size=skip.shape[2:], mode="bilinear", align_corners=False), skip), 1))
        return x + first


class U2Net(nn.Module):
    """U2-Net's small form (Qin et al. 2020) of four levels."""

    def __init__(self, inner: int = 16, width: int = 64):
        super().__init__()
        self.down = nn.ModuleList(Rsu(6 - i, width if i else 3, inner, width) for i in range(4))
        self.up = nn.ModuleList(Rsu(4 + i, 2 * width, inner, width) for i in range(3))
        self.sides = nn.ModuleList(conv(width, 1) for _ in range(4))
        self.last = conv(4, 1, 1)

    def forward(self, image):
        x, kept = image, []
        for i, down in enumerate(self.down):
            x = down(F.max_pool2d(x, 2, ceil_mode=True) if i else x)
            kept.append(x)
        maps = [kept.pop()]
        for up in self.up:
            skip = kept.pop()
            maps.append(up(torch.cat((F.interpolate(maps[-1], size=skip.shape[2:], mode="bilinear", align_corners=False), skip), 1)))
        sides = [F.interpolate(side(each), size=image.shape[2:], mode="bilinear", align_corners=False) for side, each in zip(self.sides, maps)]
        return self.last(torch.cat(sides, 1)).sigmoid()


class Preactivated(nn.Module):
    def __init__(self, taken: int, given: int):
        super().__init__()
        inner = given // 2
        self.body = nn.Sequential(nn.BatchNorm2d(taken), nn.ReLU(), conv(taken, inner, 1), nn.BatchNorm2d(inner), nn.ReLU(), conv(inner, inner), nn.BatchNorm2d(inner), nn.ReLU(), conv(inner, given, 1))
        self.skip = conv(taken, given, 1) if taken != given else nn.Identity()

    def forward(self, x):
        return self.skip(x) + self.body(x)


class Hourglass(nn.Module):
    def __init__(self, depth: int, width: int):
        super().__init__()
        self.skip, self.low, self.back = (Preactivated(width, width) for _ in range(3))
        self.inner = Hourglass(depth - 1, width) if depth > 1 else Preactivated(width, width)

    def forward(self, x):
        return self.skip(x) + F.interpolate(self.back(self.inner(self.low(F.max_pool2d(x, 2)))), scale_factor=2)


def hourglass(width: int = 128, joints: int = 16) -> nn.Module:
    """One stack of the stacked hourglass (Newell et al. 2016)."""
    stem = (conv(3, 64, 7, stride=2), nn.BatchNorm2d(64), nn.ReLU(), Preactivated(64, width), nn.MaxPool2d(2))
    return nn.Sequential(*stem, Hourglass(4, width), Preactivated(width, width), conv(width, joints, 1))


class Factorised(nn.Module):
    """ERFNet's block: 3x1 and 1x3, plain and dilated."""

    def __init__(self, width: int, dilation: int):
        super().__init__()
        pair = (lambda d: (nn.Conv2d(width, width, (3, 1), padding=(d, 0), dilation=(d, 1)), nn.ReLU(), nn.Conv2d(width, width, (1, 3), padding=(0, d), dilation=(1, d)), nn.BatchNorm2d(width)))
        self.body = nn.Sequential(*pair(1), nn.ReLU(), *pair(dilation))

    def forward(self, x):
        return F.relu(x + self.body(x))


class PoolOrStride(nn.Module):
    def __init__(self, taken: int, given: int):
        super().__init__()
        self.strided, self.norm = conv(taken, given - taken, stride=2), nn.BatchNorm2d(given)

    def forward(self, x):
        return F.relu(self.norm(torch.cat((self.strided(x), F.max_pool2d(x, 2)), 1)))


def erfnet(classes: int = 20) -> nn.Module:
    """ERFNet (Romera et al. 2017)."""
    up = (lambda a, b: (nn.ConvTranspose2d(a, b, 3, 2, 1, output_padding=1), nn.BatchNorm2d(b), nn.ReLU(), Factorised(b, 1), Factorised(b, 1)))
    middle = (Factorised(128, d) for d in (2, 4, 8, 16) * 2)
    return nn.Sequential(PoolOrStride(3, 16), PoolOrStride(16, 64), *(Factorised(64, 1) for _ in range(5)), PoolOrStride(64, 128), *middle, *up(128, 64), *up(64, 16), nn.ConvTranspose2d(16, classes, 2, 2))


class DenseStage(nn.Module):
    """Layers of a dense block; `whole`: with what it reads (on the way down), else what it adds alone (on the way up)."""

    def __init__(self, taken: int, growth: int, layers: int, whole: bool):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.BatchNorm2d(taken + i * growth), nn.ReLU(), conv(taken + i * growth, growth)) for i in range(layers))
        self.whole = whole

    def forward(self, x):
        new = []
        for layer in self.layers:
            new.append(layer(x))
            x = torch.cat((x, new[-1]), 1)
        return x if self.whole else torch.cat(new, 1)


class Tiramisu(nn.Module):
    """FC-DenseNet (Jegou et al. 2017) of three levels."""

    def __init__(self, growth: int = 12, layers: int = 4, levels: int = 3, classes: int = 12):
        super().__init__()
        width, kept = 48, []
        self.first, self.down, self.pool, self.up, self.back = conv(3, width), nn.ModuleList(), nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for _ in range(levels):
            self.down.append(DenseStage(width, growth, layers, True))
            width += growth * layers
            kept.append(width)
            self.pool.append(nn.Sequential(nn.BatchNorm2d(width), nn.ReLU(), conv(width, width, 1), nn.MaxPool2d(2)))
        self.middle = DenseStage(width, growth, layers, False)
        for _ in range(levels):
            self.up.append(nn.ConvTranspose2d(growth * layers, growth * layers, 3, 2, 1, output_padding=1))
            width = kept.pop() + growth * layers
            self.back.append(DenseStage(width, growth, layers, False))
        self.last = conv(growth * layers, classes, 1)

    def forward(self, x):
        x, kept = self.first(x), []
        for down, pool in zip(self.down, self.pool):
            kept.append(down(x))
            x = pool(kept[-1])
        x = self.middle(x)
        for up, back in zip(self.up, self.back):
            x = back(torch.cat((up(x), kept.pop()), 1))
        return self.last(x)


class SegNet(nn.Module):
    """SegNet (Badrinarayanan et al. 2017) of three levels: places of the maxima bring the image back to size."""

    def __init__(self, widths: tuple[int, ...] = (32, 64, 128), classes: int = 12):
        super().__init__()
        block = (lambda a, b: nn.Sequential(rebnconv(a, b), rebnconv(b, b)))
        self.down = nn.ModuleList(block(a, b) for a, b in zip((3, *widths), widths))
        self.up = nn.ModuleList(block(b, a) for a, b in zip((widths[0], *widths), widths))
        self.last = conv(widths[0], classes)

    def forward(self, x):
        places = []
        for down in self.down:
            x, place = F.max_pool2d(down(x), 2, return_indices=True)
            places.append(place)
        for up in reversed(self.up):
            x = up(F.max_unpool2d(x, places.pop(), 2))
        return self.last(x)


class FlowBlock(nn.Module):
    """IFBlock of RIFE: half a dozen convolutions at a quarter of the size, a transposed one back."""

    def __init__(self, taken: int, width: int):
        super().__init__()
        self.into = nn.Sequential(conv(taken, width // 2, stride=2), nn.PReLU(width // 2), conv(width // 2, width, stride=2), nn.PReLU(width))
        self.body = nn.Sequential(*(layer for _ in range(6) for layer in (conv(width, width), nn.PReLU(width))))
        self.back = nn.ConvTranspose2d(width, 5, 4, 2, 1)

    def forward(self, x):
        x = self.into(x)
        return F.interpolate(self.back(self.body(x) + x), scale_factor=2, mode="bilinear", align_corners=False).split((4, 1), 1)


class Rife(nn.Module):
    """IFNet of RIFE (Huang et al. 2022), two of its scales."""

    def __init__(self, width: int = 64):
        super().__init__()
        self.one, self.two = FlowBlock(6, width), FlowBlock(17, width)
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, 128), torch.linspace(-1, 1, 128), indexing="ij")
        self.register_buffer("grid", torch.stack((xs, ys), -1)[None])

    def warp(self, image, flow):
        return F.grid_sample(image, self.grid + flow.permute(0, 2, 3, 1) / 64, padding_mode="border", align_corners=True)

    def forward(self, x):
        before, after = x.split(3, 1)
        flow, mask = self.one(x)
        a, b = self.warp(before, flow[:, :2]), self.warp(after, flow[:, 2:])
        more, mask = self.two(torch.cat((x, a, b, flow, mask), 1))
        flow = flow + more
        a, b, share = self.warp(before, flow[:, :2]), self.warp(after, flow[:, 2:]), mask.sigmoid()
        return a * share + b * (1 - share)


def global_generator(width: int = 32, blocks: int = 4) -> nn.Module:
    """pix2pixHD's (Wang et al. 2018) and Johnson et al.'s (2016) generator."""
    norm = (lambda each: (nn.InstanceNorm2d(each), nn.ReLU()))
    down = (layer for i in range(3) for layer in (nn.Conv2d(width << i, width << (i + 1), 3, 2, 1), *norm(width << (i + 1))))
    deep = width << 3
    body = (Residual(nn.ReflectionPad2d(1), conv(deep, deep, padding=0), *norm(deep), nn.ReflectionPad2d(1), conv(deep, deep, padding=0), nn.InstanceNorm2d(deep)) for _ in range(blocks))
    up = (layer for i in (3, 2, 1) for layer in (nn.ConvTranspose2d(width << i, width << (i - 1), 3, 2, 1, output_padding=1), *norm(width << (i - 1))))
    return nn.Sequential(nn.ReflectionPad2d(3), conv(3, width, 7, padding=0), *norm(width), *down, *body, *up, nn.ReflectionPad2d(3), conv(width, 3, 7, padding=0), nn.Tanh())


def melgan(width: int = 512) -> nn.Module:
    """MelGAN (Kumar et al. 2019)."""
    def unit(each: int, dilation: int) -> nn.Module:
        return Residual(nn.LeakyReLU(0.2), nn.ReflectionPad1d(dilation), nn.Conv1d(each, each, 3, dilation=dilation), nn.LeakyReLU(0.2), nn.Conv1d(each, each, 1))

    layers: list[nn.Module] = [nn.ReflectionPad1d(3), nn.Conv1d(80, width, 7)]
    for rate in (8, 8, 2, 2):
        layers += [nn.LeakyReLU(0.2), nn.ConvTranspose1d(width, width // 2, 2 * rate, rate, rate // 2 + rate % 2, output_padding=rate % 2), *(unit(width // 2, d) for d in (1, 3, 9))]
        width //= 2
    return nn.Sequential(*layers, nn.LeakyReLU(0.2), nn.ReflectionPad1d(3), nn.Conv1d(width, 1, 7), nn.Tanh())


class WaveGan(nn.Module):
    """WaveGAN's generator (Donahue et al. 2019): 25 taps, stride 4."""

    def __init__(self, width: int = 32):
        super().__init__()
        widths = [width * 16, width * 8, width * 4, width * 2, width, 1]
        self.first = nn.Linear(100, 16 * widths[0])
        self.layers = nn.ModuleList(nn.ConvTranspose1d(a, b, 25, 4, 11, output_padding=1) for a, b in zip(widths, widths[1:]))

    def forward(self, z):
        x = self.first(z).unflatten(1, (-1, 16)).relu()
        for layer in self.layers[:-1]:
            x = layer(x).relu()
        return self.layers[-1](x).tanh()


class WaveUnet(nn.Module):
    """Wave-U-Net (Stoller et al. 2018): 15 taps, every second sample, linear resizing."""

    def __init__(self, width: int = 24, levels: int = 6):
        super().__init__()
        widths = [1, *(width * (i + 1) for i in range(levels))]
        self.down = nn.ModuleList(nn.Conv1d(a, b, 15, padding=7) for a, b in zip(widths, widths[1:]))
        self.middle = nn.Conv1d(widths[-1], widths[-1], 15, padding=7)
        self.up = nn.ModuleList(nn.Conv1d(widths[i] + widths[min(i + 1, levels)], widths[i], 5, padding=2) for i in range(levels, 0, -1))
        self.last = nn.Conv1d(width + 1, 1, 1)

    def forward(self, sound):
        x, kept = sound, []
        for down in self.down:
            kept.append(F.leaky_relu(down(x), 0.2))
            x = kept[-1][:, :, ::2]
        x = F.leaky_relu(self.middle(x), 0.2)
        for up in self.up:
            x = F.leaky_relu(up(torch.cat((F.interpolate(x, scale_factor=2, mode="linear", align_corners=False), kept.pop()), 1)), 0.2)
        return self.last(torch.cat((x, sound), 1)).tanh()


class Demucs(nn.Module):
    """Demucs (Defossez et al. 2019) without its LSTM: strides of 4, gated convolutions, transposed ones of 8 taps."""

    def __init__(self, width: int = 48, levels: int = 4):
        super().__init__()
        widths = [width << i for i in range(levels)]
        self.down = nn.ModuleList(nn.Sequential(nn.Conv1d(a, b, 8, 4, 2), nn.ReLU(), nn.Conv1d(b, 2 * b, 1), nn.GLU(1)) for a, b in zip((2, *widths), widths))
        self.up = nn.ModuleList(nn.Sequential(nn.Conv1d(b, 2 * b, 3, padding=1), nn.GLU(1), nn.ConvTranspose1d(b, a, 8, 4, 2)) for a, b in zip((8, *widths), widths))

    def forward(self, x):
        kept = []
        for down in self.down:
            x = down(x)
            kept.append(x)
        for i, up in reversed(list(enumerate(self.up))):
            x = up(x + kept.pop())
            x = x.relu() if i else x
        return x


class VoxelDense(nn.Module):
    """DenseVoxNet (Yu et al. 2017), smaller: dense blocks of volumes, transposed convolutions back."""

    def __init__(self, growth: int = 12, layers: int = 6, classes: int = 3):
        super().__init__()
        block = (lambda taken: nn.ModuleList(nn.Sequential(nn.BatchNorm3d(taken + i * growth), nn.ReLU(), nn.Conv3d(taken + i * growth, growth, 3, padding=1)) for i in range(layers)))
        given = 16 + layers * growth
        self.first, self.one, self.two = nn.Conv3d(1, 16, 3, 2, 1), block(16), block(given)
        self.between = nn.Sequential(nn.BatchNorm3d(given), nn.ReLU(), nn.Conv3d(given, given, 1), nn.MaxPool3d(2))
        last = given + layers * growth
        self.back = nn.Sequential(nn.BatchNorm3d(last), nn.ReLU(), nn.Conv3d(last, 64, 1), nn.ConvTranspose3d(64, 64, 4, 2, 1), nn.ConvTranspose3d(64, 32, 4, 2, 1), nn.Conv3d(32, classes, 1))

    def forward(self, x):
        x = self.first(x)
        for layer in self.one:
            x = torch.cat((x, layer(x)), 1)
        x = self.between(x)
        for layer in self.two:
            x = torch.cat((x, layer(x)), 1)
        return self.back(x)


MAKERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "esrgan": (rrdb, (1, 3, 64, 64)),
    "rdn": (Rdn, (1, 3, 64, 64)),
    "edsr": (edsr, (1, 3, 96, 96)),
    "edsr_x3": (functools.partial(edsr, 3), (1, 3, 80, 80)),
    "rcan": (rcan, (1, 3, 64, 64)),
    "srresnet": (srresnet, (1, 3, 64, 64)),
    "lapsrn": (LapSrn, (1, 1, 96, 96)),
    "nafnet": (NafNet, (1, 3, 192, 192)),
    "restormer": (Restormer, (1, 3, 96, 96)),
    "u2net": (U2Net, (1, 3, 224, 224)),
    "hourglass": (hourglass, (1, 3, 256, 256)),
    "erfnet": (erfnet, (1, 3, 256, 256)),
    "tiramisu": (Tiramisu, (1, 3, 128, 128)),
    "segnet": (SegNet, (1, 3, 192, 192)),
    "rife": (Rife, (1, 6, 128, 128)),
    "global_generator": (global_generator, (1, 3, 192, 192)),
    "melgan": (melgan, (1, 80, 64)),
    "wavegan": (WaveGan, (1, 100)),
    "wave_unet": (WaveUnet, (1, 1, 32768)),
    "demucs": (Demucs, (1, 2, 32768)),
    "voxel_dense": (VoxelDense, (1, 1, 48, 48, 48)),
}

NETWORKS: dict[str, tuple[Callable[[], nn.Module], Callable[[], dict[str, np.ndarray]]]] = {
    name: (made(make), inputs(x=shape)) for name, (make, shape) in MAKERS.items()
}
