"""The ten families of networks that upsample, as small PyTorch modules with random weights and trained-like statistics.

Each family is a function that returns (module, example inputs, dynamic axes). Sizes are chosen so that a forward pass takes well under a
second on two cores; the structure (layers, kernels, strides, paddings, order of normalisation and activation) is the published one.
"""

from __future__ import annotations

import dataclasses
from typing import Callable

import torch
from torch import nn
from torch.nn import functional as F


@dataclasses.dataclass
class Family:
    """A network, an input for it, and which axes of each input may change: {input name: {axis: symbol}}."""

    module: nn.Module
    inputs: dict[str, torch.Tensor]
    dynamic: dict[str, dict[int, str]]
    # Another legal input for the dynamic export: other sizes.
    other_inputs: dict[str, torch.Tensor]


def trained_like(module: nn.Module, seed: int) -> nn.Module:
    """Weights of unit gain, BatchNorm statistics and affine parameters away from 0 and 1, as after training."""
    generator = torch.Generator().manual_seed(seed)
    for layer in module.modules():
        if isinstance(layer, (nn.modules.batchnorm._BatchNorm, nn.modules.instancenorm._InstanceNorm)):
            if layer.running_mean is not None:
                layer.running_mean.copy_(torch.randn(layer.running_mean.shape, generator=generator) * 0.2)
                layer.running_var.copy_(torch.rand(layer.running_var.shape, generator=generator) * 1.5 + 0.25)
            if layer.weight is not None:
                with torch.no_grad():
                    layer.weight.copy_(torch.rand(layer.weight.shape, generator=generator) + 0.5)
                    layer.bias.copy_(torch.randn(layer.bias.shape, generator=generator) * 0.2)
        elif isinstance(layer, (nn.modules.conv._ConvNd, nn.Linear)):
            transposed = getattr(layer, "transposed", False)
            taps = layer.weight[0, 0].numel() if layer.weight.dim() > 2 else 1
            fan_in = (layer.weight.shape[0] // layer.groups if transposed else layer.weight.shape[1]) * taps
            if transposed:
                fan_in = max(1, fan_in // int(torch.tensor(layer.stride).prod()))
            with torch.no_grad():
                layer.weight.copy_(torch.randn(layer.weight.shape, generator=generator) * (1.6 / fan_in) ** 0.5)
                if layer.bias is not None:
                    layer.bias.copy_(torch.randn(layer.bias.shape, generator=generator) * 0.1)
    return module.eval()


def noise(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# --- DCGAN (Radford et al. 2016): 100-vector to 64x64 image, five transposed convolutions.
class DcganGenerator(nn.Module):
    def __init__(self, latent: int = 100, width: int = 32):
        super().__init__()
        layers: list[nn.Module] = []
        channels = [latent, width * 8, width * 4, width * 2, width]
        for i in range(4):
            layers += [
                nn.ConvTranspose2d(channels[i], channels[i + 1], 4, 1 if i == 0 else 2, 0 if i == 0 else 1, bias=False),
                nn.BatchNorm2d(channels[i + 1]),
                nn.ReLU(inplace=True),
            ]
        layers += [nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh()]
        self.layers = nn.Sequential(*layers)

    def forward(self, z):
        return self.layers(z)


# --- pix2pix (Isola et al. 2017): U-Net generator; innermost level works on 1x1.
class UnetBlock(nn.Module):
    def __init__(self, outer: int, inner: int, inside: nn.Module | None, outermost: bool = False, out: int = 3, source: int | None = None):
        super().__init__()
        self.outermost = outermost
        down = nn.Conv2d(source or outer, inner, 4, 2, 1, bias=outermost)
        if outermost:
            layers = [down, inside, nn.ReLU(True), nn.ConvTranspose2d(inner * 2, out, 4, 2, 1), nn.Tanh()]
        elif inside is None:
            layers = [nn.LeakyReLU(0.2, True), down, nn.ReLU(True), nn.ConvTranspose2d(inner, outer, 4, 2, 1, bias=False), nn.BatchNorm2d(outer)]
        else:
            layers = [nn.LeakyReLU(0.2, True), down, nn.BatchNorm2d(inner), inside, nn.ReLU(True)]
            layers += [nn.ConvTranspose2d(inner * 2, outer, 4, 2, 1, bias=False), nn.BatchNorm2d(outer), nn.Dropout(0.5)]
        self.model = nn.Sequential(*layers)

    def forward(self, x):
        return self.model(x) if self.outermost else torch.cat([x, self.model(x)], 1)


def pix2pix_generator(width: int = 16, levels: int = 8) -> nn.Module:
    block = UnetBlock(width * 8, width * 8, None)
    for _ in range(levels - 5):
        block = UnetBlock(width * 8, width * 8, block)
    block = UnetBlock(width * 4, width * 8, block)
    block = UnetBlock(width * 2, width * 4, block)
    block = UnetBlock(width, width * 2, block)
    return UnetBlock(3, width, block, outermost=True, source=3)


# --- CycleGAN (Zhu et al. 2017): reflection padding, InstanceNorm, residual blocks, k3 s2 op1 upsampling.
class CycleGanBlock(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.block = nn.Sequential(
            nn.ReflectionPad2d(1), nn.Conv2d(width, width, 3), nn.InstanceNorm2d(width), nn.ReLU(True),
            nn.ReflectionPad2d(1), nn.Conv2d(width, width, 3), nn.InstanceNorm2d(width),
        )

    def forward(self, x):
        return x + self.block(x)


def cyclegan_generator(width: int = 24, blocks: int = 4) -> nn.Module:
    layers: list[nn.Module] = [nn.ReflectionPad2d(3), nn.Conv2d(3, width, 7), nn.InstanceNorm2d(width), nn.ReLU(True)]
    for scale in (1, 2):
        layers += [nn.Conv2d(width * scale, width * scale * 2, 3, 2, 1), nn.InstanceNorm2d(width * scale * 2), nn.ReLU(True)]
    layers += [CycleGanBlock(width * 4) for _ in range(blocks)]
    for scale in (4, 2):
        layers += [nn.ConvTranspose2d(width * scale, width * scale // 2, 3, 2, 1, output_padding=1)]
        layers += [nn.InstanceNorm2d(width * scale // 2), nn.ReLU(True)]
    layers += [nn.ReflectionPad2d(3), nn.Conv2d(width, 3, 7), nn.Tanh()]
    return nn.Sequential(*layers)


# --- U-Net (Ronneberger et al. 2015; Cicek et al. 2016 in 3-D): double convolutions, k2 s2 upsampling, concatenated skips.
class Unet(nn.Module):
    def __init__(self, rank: int, source: int, classes: int, widths: list[int]):
        super().__init__()
        conv = {2: nn.Conv2d, 3: nn.Conv3d}[rank]
        norm = {2: nn.BatchNorm2d, 3: nn.BatchNorm3d}[rank]
        up = {2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}[rank]
        self.pool = {2: nn.MaxPool2d, 3: nn.MaxPool3d}[rank](2)

        def double(a: int, b: int) -> nn.Module:
            return nn.Sequential(
                conv(a, b, 3, padding=1, bias=False), norm(b), nn.ReLU(inplace=True), conv(b, b, 3, padding=1, bias=False), norm(b), nn.ReLU(inplace=True)
            )

        self.down = nn.ModuleList(double(a, b) for a, b in zip([source] + widths[:-1], widths))
        self.up = nn.ModuleList(up(b, a, 2, 2) for a, b in zip(widths[-2::-1], widths[:0:-1]))
        self.merge = nn.ModuleList(double(a * 2, a) for a in widths[-2::-1])
        self.head = conv(widths[0], classes, 1)

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else self.pool(x))
            skips.append(x)
        skips.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([skips.pop(), up(x)], 1))
        return self.head(x)


# --- FSRCNN (Dong et al. 2016): k9 head with output_padding.
class Fsrcnn(nn.Module):
    def __init__(self, scale: int = 3, d: int = 56, s: int = 12, m: int = 4):
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(1, d, 5, padding=2), nn.PReLU(d), nn.Conv2d(d, s, 1), nn.PReLU(s)]
        for _ in range(m):
            layers += [nn.Conv2d(s, s, 3, padding=1), nn.PReLU(s)]
        layers += [nn.Conv2d(s, d, 1), nn.PReLU(d)]
        self.body = nn.Sequential(*layers)
        self.head = nn.ConvTranspose2d(d, 1, 9, stride=scale, padding=4, output_padding=scale - 1)

    def forward(self, x):
        return self.head(self.body(x))


# --- DBPN (Haris et al. 2018): alternating up- and down-projection, k8 s4 p2.
class Projection(nn.Module):
    def __init__(self, width: int, upwards: bool):
        super().__init__()
        kinds = (nn.ConvTranspose2d, nn.Conv2d) if upwards else (nn.Conv2d, nn.ConvTranspose2d)
        self.first = nn.Sequential(kinds[0](width, width, 8, 4, 2), nn.PReLU())
        self.back = nn.Sequential(kinds[1](width, width, 8, 4, 2), nn.PReLU())
        self.second = nn.Sequential(kinds[0](width, width, 8, 4, 2), nn.PReLU())

    def forward(self, x):
        first = self.first(x)
        return first + self.second(self.back(first) - x)


class Dbpn(nn.Module):
    def __init__(self, width: int = 24, stages: int = 2):
        super().__init__()
        self.feature = nn.Sequential(nn.Conv2d(3, width * 2, 3, padding=1), nn.PReLU(), nn.Conv2d(width * 2, width, 1), nn.PReLU())
        self.up = nn.ModuleList(Projection(width, True) for _ in range(stages))
        self.down = nn.ModuleList(Projection(width, False) for _ in range(stages - 1))
        self.head = nn.Conv2d(width * stages, 3, 3, padding=1)

    def forward(self, x):
        x = self.feature(x)
        highs = []
        for i, up in enumerate(self.up):
            highs.append(up(x))
            if i < len(self.down):
                x = self.down[i](highs[-1])
        return self.head(torch.cat(highs, 1))


# --- ResNet backbone, shared by the pose net, LinkNet and FCN (He et al. 2016).
class BasicBlock(nn.Module):
    def __init__(self, source: int, width: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(source, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.short = None
        if stride != 1 or source != width:
            self.short = nn.Sequential(nn.Conv2d(source, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (x if self.short is None else self.short(x)))


class Bottleneck(nn.Module):
    def __init__(self, source: int, width: int, stride: int):
        super().__init__()
        inner = width // 4
        self.body = nn.Sequential(
            nn.Conv2d(source, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(inplace=True),
            nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(inplace=True),
            nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width),
        )
        self.short = nn.Identity()
        if stride != 1 or source != width:
            self.short = nn.Sequential(nn.Conv2d(source, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))


class Backbone(nn.Module):
    def __init__(self, block: Callable[..., nn.Module], widths: list[int], depths: tuple[int, ...] = (2, 2, 2, 2), stem: int = 16):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, stem, 7, 2, 3, bias=False), nn.BatchNorm2d(stem), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        self.stages = nn.ModuleList()
        source = stem
        for i, (width, depth) in enumerate(zip(widths, depths)):
            blocks = [block(source if j == 0 else width, width, 2 if i > 0 and j == 0 else 1) for j in range(depth)]
            self.stages.append(nn.Sequential(*blocks))
            source = width

    def forward(self, x):
        x = self.stem(x)
        levels = []
        for stage in self.stages:
            x = stage(x)
            levels.append(x)
        return levels


# --- Simple Baselines for pose (Xiao et al. 2018): three k4 s2 deconvolutions on a ResNet.
class PoseNet(nn.Module):
    def __init__(self, joints: int = 17, widths: tuple[int, ...] = (32, 64, 96, 128), depths: tuple[int, ...] = (2, 2, 2, 2), stem: int = 16, up: int = 64):
        super().__init__()
        self.backbone = Backbone(Bottleneck, list(widths), depths, stem)
        layers: list[nn.Module] = []
        for i in range(3):
            layers += [nn.ConvTranspose2d(widths[-1] if i == 0 else up, up, 4, 2, 1, bias=False), nn.BatchNorm2d(up), nn.ReLU(inplace=True)]
        self.deconv = nn.Sequential(*layers)
        self.final = nn.Conv2d(up, joints, 1)

    def forward(self, x):
        return self.final(self.deconv(self.backbone(x)[-1]))


# --- LinkNet (Chaurasia & Culurciello 2017): additive skips, k3 s2 op1 in the decoder, k3/k2 s2 head.
class LinkDecoder(nn.Module):
    def __init__(self, source: int, width: int, stride: int):
        super().__init__()
        inner = source // 4
        self.body = nn.Sequential(
            nn.Conv2d(source, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(inplace=True),
            nn.ConvTranspose2d(inner, inner, 3, stride, 1, output_padding=stride - 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(inplace=True),
            nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.body(x)


class LinkNet(nn.Module):
    def __init__(self, classes: int = 11, widths: tuple[int, ...] = (16, 32, 48, 64), head: int = 16):
        super().__init__()
        self.backbone = Backbone(BasicBlock, list(widths), stem=widths[0])
        self.decode = nn.ModuleList(LinkDecoder(widths[i], widths[max(i - 1, 0)], 2 if i > 0 else 1) for i in reversed(range(4)))
        self.head = nn.Sequential(
            nn.ConvTranspose2d(widths[0], head, 3, 2, 1, 1), nn.ReLU(inplace=True), nn.Conv2d(head, head, 3, padding=1), nn.ReLU(inplace=True),
            nn.ConvTranspose2d(head, classes, 2, 2),
        )

    def forward(self, x):
        levels = self.backbone(x)
        y = levels.pop()
        for decode in self.decode:
            y = decode(y)
            if levels:
                y = y + levels.pop()
        return self.head(y)


# --- FCN-8s (Long et al. 2015): bilinear-initialised diagonal deconvolutions, crops to the skips' size.
def bilinear_weight(channels: int, kernel: int) -> torch.Tensor:
    factor = (kernel + 1) // 2
    centre = factor - 1 if kernel % 2 == 1 else factor - 0.5
    ramp = 1 - (torch.arange(kernel, dtype=torch.float32) - centre).abs() / factor
    weight = torch.zeros(channels, channels, kernel, kernel)
    weight[range(channels), range(channels)] = ramp[:, None] * ramp[None, :]
    return weight


class Fcn8s(nn.Module):
    def __init__(self, classes: int = 5):
        super().__init__()
        self.backbone = Backbone(BasicBlock, [16, 32, 64, 64])
        self.score = nn.ModuleList(nn.Conv2d(width, classes, 1) for width in (64, 64, 32))
        self.up2 = nn.ConvTranspose2d(classes, classes, 4, 2, bias=False)
        self.up4 = nn.ConvTranspose2d(classes, classes, 4, 2, bias=False)
        self.up32 = nn.ConvTranspose2d(classes, classes, 16, 8, bias=False)

    def forward(self, x):
        _, level8, level16, level32 = self.backbone(x)
        y = self.up2(self.score[0](level32))
        skip = self.score[1](level16)
        y = y[:, :, 1 : 1 + skip.shape[2], 1 : 1 + skip.shape[3]] + skip
        y = self.up4(y)
        skip = self.score[2](level8)
        y = y[:, :, 1 : 1 + skip.shape[2], 1 : 1 + skip.shape[3]] + skip
        y = self.up32(y)
        return y[:, :, 4 : 4 + x.shape[2], 4 : 4 + x.shape[3]]


def fcn8s() -> nn.Module:
    module = trained_like(Fcn8s(), 10)
    for layer in (module.up2, module.up4, module.up32):
        with torch.no_grad():
            layer.weight.copy_(bilinear_weight(layer.in_channels, layer.kernel_size[0]))
    return module


# --- HiFi-GAN V1-like (Kong et al. 2020): k=2s upsampling, multi-receptive-field residual stacks of dilated convolutions.
class HifiResidual(nn.Module):
    def __init__(self, width: int, kernel: int, dilations: tuple[int, ...]):
        super().__init__()
        self.first = nn.ModuleList(nn.Conv1d(width, width, kernel, padding=d * (kernel - 1) // 2, dilation=d) for d in dilations)
        self.second = nn.ModuleList(nn.Conv1d(width, width, kernel, padding=(kernel - 1) // 2) for _ in dilations)

    def forward(self, x):
        for first, second in zip(self.first, self.second):
            x = x + second(F.leaky_relu(first(F.leaky_relu(x, 0.1)), 0.1))
        return x


class HifiGan(nn.Module):
    def __init__(self, mels: int = 80, width: int = 64, rates=(8, 8, 2, 2), kernels=(16, 16, 4, 4)):
        super().__init__()
        self.pre = nn.Conv1d(mels, width, 7, padding=3)
        self.ups = nn.ModuleList()
        self.blocks = nn.ModuleList()
        for i, (rate, kernel) in enumerate(zip(rates, kernels)):
            self.ups.append(nn.ConvTranspose1d(width >> i, width >> (i + 1), kernel, rate, (kernel - rate) // 2))
            self.blocks.append(nn.ModuleList(HifiResidual(width >> (i + 1), k, (1, 3, 5)) for k in (3, 7, 11)))
        self.post = nn.Conv1d(width >> len(rates), 1, 7, padding=3)

    def forward(self, mel):
        x = self.pre(mel)
        for up, blocks in zip(self.ups, self.blocks):
            x = up(F.leaky_relu(x, 0.1))
            x = (blocks[0](x) + blocks[1](x) + blocks[2](x)) / 3
        return torch.tanh(self.post(F.leaky_relu(x)))


def _family(module: nn.Module, name: str, shape: tuple[int, ...], other: tuple[int, ...], axes: dict[int, str], seed: int) -> Family:
    return Family(trained_like(module, seed), {name: noise(*shape, seed=seed)}, {name: axes}, {name: noise(*other, seed=seed + 100)})


IMAGE = {0: "N", 2: "H", 3: "W"}

FAMILIES: dict[str, Callable[[], Family]] = {
    "dcgan": lambda: _family(DcganGenerator(), "z", (2, 100, 1, 1), (5, 100, 1, 1), {0: "N"}, 1),
    "pix2pix": lambda: _family(pix2pix_generator(), "image", (1, 3, 256, 256), (3, 3, 256, 256), {0: "N"}, 2),
    "cyclegan": lambda: _family(cyclegan_generator(), "image", (1, 3, 64, 64), (2, 3, 48, 80), IMAGE, 3),
    "unet2d": lambda: _family(Unet(2, 3, 4, [16, 32, 64, 128]), "image", (1, 3, 96, 96), (2, 3, 64, 128), IMAGE, 4),
    "unet3d": lambda: _family(Unet(3, 1, 3, [8, 16, 32]), "volume", (1, 1, 32, 32, 32), (1, 1, 16, 40, 24), {0: "N", 2: "D", 3: "H", 4: "W"}, 5),
    "fsrcnn": lambda: _family(Fsrcnn(), "y", (1, 1, 40, 60), (2, 1, 33, 47), IMAGE, 6),
    "dbpn": lambda: _family(Dbpn(), "image", (1, 3, 24, 24), (2, 3, 17, 30), IMAGE, 7),
    "pose": lambda: _family(PoseNet(), "image", (1, 3, 128, 96), (3, 3, 64, 128), IMAGE, 8),
    "linknet": lambda: _family(LinkNet(), "image", (1, 3, 96, 128), (2, 3, 64, 96), IMAGE, 9),
    "fcn8s": lambda: Family(fcn8s(), {"image": noise(1, 3, 96, 128, seed=10)}, {"image": IMAGE}, {"image": noise(2, 3, 128, 96, seed=110)}),
    "hifigan": lambda: _family(HifiGan(), "mel", (1, 80, 24), (2, 80, 37), {0: "N", 2: "T"}, 11),
}
