"""Layers of few output channels between channels-first images, with what follows them fused: the paths of conv_overlap (images read
where they lie, near and far, lines that are cut, borders, crops, groups) against PyTorch."""
import numpy as np
import polyphase
import pytest
import torch

CONVS = {1: torch.nn.ConvTranspose1d, 2: torch.nn.ConvTranspose2d}


class Net(torch.nn.Module):
    def __init__(self, rank: int, channels: tuple[int, int], kernel, stride, **options):
        super().__init__()
        self.up = CONVS[rank](*channels, kernel, stride, **options)

    def forward(self, x, skip):
        return torch.relu(self.up(x) + skip)


GEOMETRIES = {
    "a head": (2, (88, 1), 3, 2, {"padding": 1}, (51, 65)),
    "a head of a large image": (2, (64, 1), 3, 2, {"padding": 1, "output_padding": 1}, (130, 140)),
    "no taps meet": (2, (64, 1), 2, 2, {}, (100, 101)),
    "channels that share sets of the caches": (2, (128, 1), 3, 2, {"padding": 1}, (64, 64)),
    "a line that is cut": (1, (64, 1), 6, 3, {"padding": 2}, (40000,)),
    "groups": (2, (192, 3), 3, 2, {"groups": 3, "padding": 1}, (40, 41)),
}


@pytest.mark.parametrize("name", GEOMETRIES)
def test_few_output_channels(name):
    rank, channels, kernel, stride, options, size = GEOMETRIES[name]
    torch.manual_seed(len(name))
    net = Net(rank, channels, kernel, stride, **options).eval()
    x = torch.randn(2, channels[0], *size)
    with torch.no_grad():
        skip = torch.randn(net.up(x).shape)
        want = net.double()(x.double(), skip.double()).numpy()
    compiled = polyphase.compile(net.float(), (x, skip))
    got = compiled(x, skip)
    got = (got[0] if isinstance(got, (tuple, list)) else got).detach().numpy()
    assert got.shape == want.shape
    assert np.max(np.abs(got - want)) < 2e-5 * np.sqrt(channels[0])


def test_most_of_these_geometries_take_it():
    taken = 0
    for rank, channels, kernel, stride, options, size in GEOMETRIES.values():
        up = CONVS[rank](*channels, kernel, stride, **options)
        steps = polyphase.compile(up, (torch.randn(2, channels[0], *size),), target="avx2").info()["steps"]
        taken += [step["rows"][0] for step in steps] == ["conv_transpose_overlap"]
    assert taken >= 4, "estimates have changed: write down geometries that take the kernel"


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_open_sizes(rank):
    """Whether there is a third axis shows in the rank alone: its size may be open, its kernel 1."""
    torch.manual_seed(rank)
    convs = {**CONVS, 3: torch.nn.ConvTranspose3d}
    net = convs[rank](24, 1, (1, 3, 3)[3 - rank:], (1, 2, 2)[3 - rank:], padding=(0, 1, 1)[3 - rank:]).eval()
    x = torch.randn(1, 24, *(5, 40, 41)[3 - rank:])
    sizes = {2 + axis: torch.export.Dim.AUTO for axis in range(rank)}
    compiled = polyphase.compile(net, (x,), dynamic_shapes=(sizes,))
    for factor in (1, 2):
        x = torch.randn(1, 24, *(factor * 5 + 2, 40 * factor, 41 + factor)[3 - rank:])
        with torch.no_grad():
            want = net(x)
        found = compiled(x)
        found = found[0] if isinstance(found, (tuple, list)) else found
        assert found.shape == want.shape
        assert torch.max(torch.abs(torch.as_tensor(found) - want)) < 1e-4
