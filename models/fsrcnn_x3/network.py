"""The network: a single-channel x3 upsampler after FSRCNN: residual mapping, then a transposed convolution."""
import torch
from torch import nn

SCALE = 3


class ResidualBlock(nn.Module):
    """x + conv3x3(prelu(conv3x3(x))), then prelu."""

    def __init__(self, channels: int):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.inner = nn.PReLU(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.outer = nn.PReLU(channels)

    def forward(self, x):
        return self.outer(x + self.second(self.inner(self.first(x))))


class Fsrcnn(nn.Module):
    """Luminance in [0, 1], N x 1 x H x W -> N x 1 x 3H x 3W.

        conv 5x5, 1 -> features          what is at this place
        conv 1x1, features -> channels   shrink: all further work is done in few channels, at low resolution
        blocks of two conv 3x3           mapping
        conv 1x1, channels -> features   expand
        deconv 9x9, stride 3             draws each low-resolution pixel as a 9 x 9 stamp

    The deconv's padding 4 and output_padding 2 make the height (H - 1) * 3 - 2 * 4 + 9 + 2 = 3H.
    """

    def __init__(self, features: int = 64, channels: int = 24, blocks: int = 4):
        super().__init__()
        self.feature = nn.Sequential(nn.Conv2d(1, features, 5, padding=2), nn.PReLU(features))
        self.shrink = nn.Sequential(nn.Conv2d(features, channels, 1), nn.PReLU(channels))
        self.mapping = nn.Sequential(*(ResidualBlock(channels) for _ in range(blocks)))
        self.expand = nn.Sequential(nn.Conv2d(channels, features, 1), nn.PReLU(features))
        self.upsample = nn.ConvTranspose2d(features, 1, 9, stride=SCALE, padding=4, output_padding=2)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, a=0.25)
                nn.init.zeros_(layer.bias)
        for block in self.mapping:  # each block begins as nearly the identity
            block.second.weight.data.mul_(0.1)
        nn.init.normal_(self.upsample.weight, std=0.01)
        nn.init.zeros_(self.upsample.bias)

    def forward(self, y):
        return self.upsample(self.expand(self.mapping(self.shrink(self.feature(y)))))
