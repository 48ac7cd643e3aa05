"""Layers and functions for networks written by hand.

    import polyphase
    from polyphase import nn

    class Decoder(nn.Module):
        def __init__(self):
            self.up = nn.ConvTranspose2d(64, 32, 3, stride=2, padding=1)
            self.norm = nn.GroupNorm(8, 32)

        def forward(self, x, skip):
            return nn.functional.silu(self.norm(self.up(x, output_size=skip)))

    decoder = Decoder()
    decoder.load_state_dict(torch.load("decoder.pt"))     # of a PyTorch module with the same names
    with polyphase.Network() as net:
        x, skip = net.add_input("x", "float32", (1, 64, "H", "W")), net.add_input("skip", "float32", (1, 32, "2*H - 1", "2*W - 1"))
        net.mark_output(decoder(x, skip), "y")
    engine = net.compile()
    y = decoder(array, skip_array)                         # or at once
"""

from . import functional
from ._layers import (AvgPool2d, Cast, Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, Embedding, GroupNorm, InstanceNorm, LayerNorm, Linear, Mish,
                      MultiHeadAttention, PixelShuffle, RmsNorm, Upsample)
from ._module import Module, ModuleList, Parameter, Sequential

__all__ = ["AvgPool2d", "Cast", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Embedding", "GroupNorm", "InstanceNorm",
           "LayerNorm", "Linear", "Mish", "Module", "ModuleList", "MultiHeadAttention", "Parameter", "PixelShuffle", "RmsNorm", "Sequential", "Upsample", "functional"]
