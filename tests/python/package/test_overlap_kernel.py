"""Layers of few output channels between channels-first images, with what follows them fused: the paths of conv_overlap (images read
where they lie, near and far, or gathered, lines that are cut, borders, crops, groups) against PyTorch."""
import polyphase
import pytest
import torch
from fused_layers import CONVS, check, count_taking, only

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
    check(GEOMETRIES[name], "residual", len(name))


def test_most_of_these_geometries_take_it():
    taken = count_taking("conv_transpose_overlap", GEOMETRIES.values())
    assert taken >= 4, "estimates have changed: write down geometries that take the kernel"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_images_in_half(name, dtype):
    """Widened as they are gathered, rounded once as they are stored."""
    rank, channels, kernel, stride, options, size = GEOMETRIES[name]
    torch.manual_seed(len(name))
    net = CONVS[rank](*channels, kernel, stride, **options).to(dtype).eval()
    x = torch.randn(2, channels[0], *size).to(dtype)
    compiled = polyphase.compile(net, (x,))
    with torch.no_grad():
        want = net.double()(x.double())
    found = only(compiled(x))
    assert found.dtype == dtype
    off = torch.abs(torch.as_tensor(found).double() - want)
    assert torch.all(off <= 0.51 * torch.finfo(dtype).eps * torch.abs(want) + 1e-5)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_open_sizes(rank):
    """Whether there is a third axis shows in the rank alone: its size may be open, its kernel 1."""
    torch.manual_seed(rank)
    net = CONVS[rank](24, 1, (1, 3, 3)[3 - rank:], (1, 2, 2)[3 - rank:], padding=(0, 1, 1)[3 - rank:]).eval()
    x = torch.randn(1, 24, *(5, 40, 41)[3 - rank:])
    sizes = {2 + axis: torch.export.Dim.AUTO for axis in range(rank)}
    compiled = polyphase.compile(net, (x,), dynamic_shapes=(sizes,))
    for factor in (1, 2):
        x = torch.randn(1, 24, *(factor * 5 + 2, 40 * factor, 41 + factor)[3 - rank:])
        with torch.no_grad():
            want = net(x)
        found = only(compiled(x))
        assert found.shape == want.shape
        assert torch.max(torch.abs(torch.as_tensor(found) - want)) < 1e-4
