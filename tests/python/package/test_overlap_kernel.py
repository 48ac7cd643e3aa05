"""Layers of few output channels, with what follows them fused, against PyTorch: the paths of conv_overlap between channels-first images
(read where they lie, near and far, or gathered, lines that are cut, borders, crops, groups), and heads of networks whose images are
channels-last."""
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


HEADS = {
    "an image of three channels": (torch.nn.Conv2d(64, 3, 3, padding=1), (80, 96)),
    "one channel": (torch.nn.Conv2d(48, 1, 3, padding=1), (65, 67)),
    "a mirrored border": (torch.nn.Conv2d(32, 3, 5, padding=2, padding_mode="reflect"), (40, 75)),
    "the nearest elements as a border": (torch.nn.Conv2d(48, 2, 3, padding=(1, 1), padding_mode="replicate"), (33, 50)),
    "a generator's last layer": (torch.nn.ConvTranspose2d(64, 3, 4, 2, 1), (64, 64)),
    "a scale that leaves gaps": (torch.nn.ConvTranspose2d(56, 1, 5, 3, 1, output_padding=1), (50, 61)),
    "holes": (torch.nn.Conv2d(64, 2, 3, padding=4, dilation=4), (41, 52)),
    "a vocoder's last layer": (torch.nn.Conv1d(32, 1, 7, padding=3), (5000,)),
}


def behind_a_layer(head):
    """A layer of many channels in front of a head, so that the image between them lies channels-last."""
    channels = head.in_channels
    inner = torch.nn.Conv1d if isinstance(head, torch.nn.Conv1d) else torch.nn.Conv2d
    return torch.nn.Sequential(inner(channels, channels, 3, padding=1), torch.nn.LeakyReLU(0.2), head, torch.nn.Tanh()).eval()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", HEADS)
def test_heads_of_networks(name, threads):
    head, size = HEADS[name]
    torch.manual_seed(len(name))
    net = behind_a_layer(head)
    x = torch.randn(2, head.in_channels, *size)
    session = polyphase.compile(net, (x,)).session(threads=threads)
    found = torch.as_tensor(only(list(session.run([x.numpy()]).values())))
    with torch.no_grad():
        want = net.double()(x.double())
    net.float()
    assert found.shape == want.shape
    assert torch.max(torch.abs(found - want)) < 1e-5


def test_most_of_these_heads_take_it():
    rows = []
    for head, size in HEADS.values():
        x = torch.randn(1, head.in_channels, *size)
        rows += [row for step in polyphase.compile(behind_a_layer(head), (x,), target="avx2").info()["steps"] for row in step["rows"]]
    assert sum(row.endswith("overlap_last") for row in rows) >= 6, "estimates have changed: write down heads that take the kernel"
