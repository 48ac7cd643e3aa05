"""Normalisations with what follows them in one step, in FP32 and, where images are stored so, in bf16."""
import numpy as np
import pytest
import torch
from torch import nn

import polyphase


class Residual(nn.Module):
    """Convolutions between normalisations: a ReLU, a gate, a sum with what came before; padded by zeros or by pixels."""

    def __init__(self, norm, channels, pads):
        super().__init__()
        mode = "reflect" if pads else "zeros"
        convs = [nn.Conv2d(channels, channels, 3, padding=1, padding_mode=mode, bias=False) for _ in range(3)]
        self.convs, self.norms = nn.ModuleList(convs), nn.ModuleList([norm(channels) for _ in range(3)])

    def forward(self, x):
        x = torch.relu(self.norms[0](self.convs[0](x)))
        x = x + self.norms[1](self.convs[1](x))
        return nn.functional.silu(self.norms[2](self.convs[2](x)))


NORMS = {
    "instance": lambda channels: nn.InstanceNorm2d(channels, affine=True),
    "groups of some": lambda channels: nn.GroupNorm(4, channels),
    "one group": lambda channels: nn.GroupNorm(1, channels),
}


def network(norm, channels, pads):
    torch.manual_seed(channels)
    net = Residual(NORMS[norm], channels, pads).eval()
    for each in net.norms:
        nn.init.normal_(each.weight), nn.init.normal_(each.bias)
    return net


def relative_error(net, x, **options):
    with torch.no_grad():
        want = net.double()(x.double()).numpy()
    found = polyphase.compile(net.float(), (x,), **options)(x.numpy()).astype(np.float64)
    return np.linalg.norm(found - want) / np.linalg.norm(want)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("channels", "size"), [(20, 9), (72, 24), (136, 40)])
def test_results(norm, channels, size):
    for pads in (False, True):
        x = torch.randn(2, channels, size, size + 3) + 30  # the mean is large beside the deviations
        assert relative_error(network(norm, channels, pads), x, precision="fp32") <= 1e-5
        assert relative_error(network(norm, channels, pads), x - 30, precision="auto") <= 2e-2


def test_what_follows_is_no_step_of_its_own():
    for pads, first in ((False, "cast + conv"), (True, "cast + pad + conv")):
        engine = polyphase.compile(network("instance", 64, pads), (torch.randn(1, 64, 48, 48),), precision="auto", target="amx")
        steps = [step["operation"] for step in engine.info()["steps"] if "norm" in step["operation"] or "conv" in step["operation"]]
        assert steps[1:5] == ["instance_norm + relu + cast", first, "instance_norm + add_mixed + cast", first]


@pytest.mark.parametrize("channels", [5, 24, 80])
@pytest.mark.parametrize("sizes", [(9, 14), (3, 1)])
def test_sums_with_what_is_stored_in_bf16(channels, sizes):
    net = polyphase.Network()
    x = net.add_input("x", "float32", (2, channels, *sizes))
    r = net.add_input("r", "bfloat16", (2, channels, *sizes))
    net.mark_output(net.relu(net.add_mixed(net.instance_norm(x), r)), "y")
    engine = net.compile(input_layouts={"x": "NHWC", "r": "NHWC"}, output_layouts={"y": "NHWC"})
    assert [step["operation"] for step in engine.info()["steps"]] == ["instance_norm + add_mixed + relu"]
    torch.manual_seed(channels)
    a, b = torch.randn(2, *sizes, channels), torch.randn(2, *sizes, channels).bfloat16()
    with torch.no_grad():
        want = torch.relu(nn.functional.instance_norm(a.double().movedim(-1, 1)).movedim(1, -1) + b.double())
    assert float((torch.as_tensor(engine(a, b)).double() - want).abs().max()) <= 2e-6


@pytest.mark.parametrize("rank", [2, 3, 5, 6, 7])
def test_any_number_of_axes(rank):
    torch.manual_seed(rank)
    net = nn.Sequential(nn.GroupNorm(2, 6), nn.SiLU())
    x = torch.randn(3, 6, 5, 4, 2, 3, 2)[(..., *[0] * (7 - rank))]
    assert relative_error(net, x) <= 1e-6


@pytest.mark.parametrize("sizes", [(0, 6, 5, 5), (2, 0, 5, 5), (2, 6, 0, 5)])
def test_nothing_to_normalise(sizes):
    net = polyphase.Network()
    x = net.add_input("x", "float32", sizes)
    net.mark_output(net.relu(net.group_norm(x, groups=2)), "y")
    assert net.compile()(np.zeros(sizes, np.float32)).shape == sizes
    batch, channels, *rest = sizes
    inside = net.compile(input_layouts={"x": "NHWC"}, output_layouts={"y": "NHWC"})
    assert "normalize_columns" in [row for step in inside.info()["steps"] for row in step["rows"]]
    assert inside(np.zeros((batch, *rest, channels), np.float32)).shape == (batch, *rest, channels)
