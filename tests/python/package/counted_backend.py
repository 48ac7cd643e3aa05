"""What the tests of torch.compile share: the backend with its graphs counted, and small networks."""

from __future__ import annotations

import torch
from polyphase.torch import _backend
from torch import nn


class Counter:
    """The backend, noting each graph that it is given."""

    def __init__(self, **options):
        self.options = options
        self.graphs: list[_backend.CompiledGraph] = []

    def __call__(self, graph, example_inputs):
        captured = _backend.Captured(graph, _backend.Settings.of(self.options, {}))
        function = captured.compile(example_inputs)
        self.graphs.append(captured.compiled)
        return function

    def engines(self) -> int:
        return sum(len(known.engines) for graph in self.graphs for known in graph._sets)


def deconvolution(**options) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.ConvTranspose2d(8, 3, 3, 2, 1, **options)).eval()


def assert_same(found, want, tolerance=1e-4):
    torch.testing.assert_close(found, want, atol=tolerance, rtol=tolerance)
    for one, other in zip(*map(torch.utils._pytree.tree_leaves, (found, want))):
        assert one.stride() == other.stride()


class Odd(nn.Module):
    """A Bessel function in between: two islands around what PyTorch runs."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 4, 3, 2, 1)
        self.up = nn.ConvTranspose2d(4, 3, 3, 2, 1)

    def forward(self, x):
        y = self.up(torch.relu(self.down(x)), output_size=x.shape[2:]) + x
        y = torch.special.bessel_j0(y)
        return torch.sigmoid(self.up(torch.relu(self.down(y)), output_size=x.shape[2:]))


class Call(nn.Module):
    """A function of a convolution's result."""

    def __init__(self, function):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.scale = torch.tensor(2.0)
        self.function = function

    def forward(self, x, *others):
        return self.function(self, self.conv(x), *others)
