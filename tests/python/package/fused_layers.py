"""Single transposed convolutions with what follows them fused, against PyTorch, and how many of them take a kernel."""
import numpy as np
import polyphase
import torch

CONVS = {1: torch.nn.ConvTranspose1d, 2: torch.nn.ConvTranspose2d, 3: torch.nn.ConvTranspose3d}


class Net(torch.nn.Module):
    def __init__(self, rank: int, channels: tuple[int, int], kernel, stride, ending: str, **options):
        super().__init__()
        self.up = CONVS[rank](*channels, kernel, stride, **options)
        self.ending = ending
        self.scale = torch.nn.Parameter(torch.rand(channels[1], *[1] * rank) + 0.5)

    def forward(self, x, skip):
        y = self.up(x)
        if self.ending == "alike":  # the same for all pixels of a channel
            return torch.sigmoid(y * self.scale)
        if self.ending == "residual":
            return torch.relu(y + skip)
        return y


def only(results):
    """A program's one result, in a tuple or not."""
    return results[0] if isinstance(results, (tuple, list)) else results


def check(geometry, ending: str, seed: int) -> None:
    """`geometry`: rank, channels, kernel, stride, options of the layer, sizes of the image."""
    rank, channels, kernel, stride, options, size = geometry
    torch.manual_seed(seed)
    net = Net(rank, channels, kernel, stride, ending, **options).eval()
    x = torch.randn(2, channels[0], *size)
    with torch.no_grad():
        skip = torch.randn(net.up(x).shape)
        want = net.double()(x.double(), skip.double()).numpy()
    compiled = polyphase.compile(net.float(), (x, skip))
    got = only(compiled(x, skip)).detach().numpy()
    assert got.shape == want.shape
    assert np.max(np.abs(got - want)) < 2e-5 * max(1, np.sqrt(channels[0]))


def count_taking(row: str, geometries) -> int:
    """How many of the geometries are one step of this row, compiled for AVX2: other instructions' estimates choose otherwise."""
    taken = 0
    for rank, channels, kernel, stride, options, size in geometries:
        up = CONVS[rank](*channels, kernel, stride, **options)
        steps = polyphase.compile(up, (torch.randn(2, channels[0], *size),), target="avx2").info()["steps"]
        taken += [step["rows"][0] for step in steps] == [row]
    return taken
