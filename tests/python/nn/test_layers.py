"""The layers of polyphase.nn against torch.nn: results with the same checkpoint, at once and in a network, and errors."""

from __future__ import annotations

import inspect

import numpy as np
import polyphase
import pytest
import torch
from polyphase import nn
from torch.nn.utils import parametrizations, weight_norm


def data(*sizes, seed=0) -> torch.Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


def close(found, want, atol=1e-4):
    found = torch.as_tensor(found)
    assert found.shape == want.shape and found.dtype == want.dtype
    torch.testing.assert_close(found, want, atol=atol, rtol=1e-4)


def check(ours, theirs, *xs, atol=1e-4, pick=lambda y: y):
    """With PyTorch's checkpoint: at once, and in a network whose leading size is open."""
    theirs = theirs.eval()
    ours.load_state_dict(theirs.state_dict())
    with torch.no_grad():
        want = pick(theirs(*xs))
    close(ours(*xs), want, atol)
    net = polyphase.Network()
    inputs = [net.add_input(f"x{i}", x.dtype, tuple(x.shape)) for i, x in enumerate(xs)]
    net.mark_output(ours(*inputs), "y")
    close(net.compile()(*xs), want, atol)


CONVOLUTION = "stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, bias=True, padding_mode='zeros', dtype=None)"
SIGNATURES = {
    "Mish": "()", "Cast": "(output_dtype='float32')", "AvgPool2d": "(kernel_size, stride=None, padding=(0, 0), ceil_mode=False, count_include_pad=True)",
    "LayerNorm": "(normalized_shape, eps=1e-05, elementwise_affine=True, dtype=None)", "RmsNorm": "(normalized_shape, eps=1e-06, elementwise_affine=True, dtype=None)",
    "GroupNorm": "(num_groups, num_channels, eps=1e-05, affine=True, dtype=None)", "Linear": "(in_features, out_features, bias=True, dtype=None, tp_group=None, tp_size=1, gather_output=True, share_weight=None)",
    "Embedding": "(num_embeddings, embedding_dim, dtype=None, tp_size=1, tp_group=None, sharding_dim=0, tp_rank=None)", "Conv2d": "(in_channels, out_channels, kernel_size, " + CONVOLUTION,
    "ConvTranspose2d": "(in_channels, out_channels, kernel_size, " + CONVOLUTION.replace("padding=(0, 0),", "padding=(0, 0), output_padding=(0, 0),", 1),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name):
    signature = inspect.signature(getattr(nn, name))
    plain = signature.replace(parameters=[p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()], return_annotation=inspect.Signature.empty)
    assert str(plain) == SIGNATURES[name]


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_convolutions(spatial, mode):
    settings = dict(stride=2, padding=2, dilation=1, groups=2, padding_mode=mode)
    ours, theirs = getattr(nn, f"Conv{spatial}d")(4, 6, 3, **settings), getattr(torch.nn, f"Conv{spatial}d")(4, 6, 3, **settings)
    check(ours, theirs, data(2, 4, *[9, 8, 7][:spatial]))
    check(ours, theirs, data(4, *[9, 8, 7][:spatial]))


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_transposed_convolutions(spatial):
    settings = dict(stride=3, padding=1, output_padding=2, dilation=2, groups=2, bias=False)
    ours, theirs = getattr(nn, f"ConvTranspose{spatial}d")(4, 6, 3, **settings), getattr(torch.nn, f"ConvTranspose{spatial}d")(4, 6, 3, **settings)
    check(ours, theirs, data(2, 4, *[5, 4, 3][:spatial]))
    check(ours, theirs, data(4, *[5, 4, 3][:spatial]))


def test_output_size():
    """conv k3 s2 p1: 7 → 4; the deconvolution 4 → 7, with output_padding 1 or output_size 8 → 8."""
    theirs = torch.nn.ConvTranspose1d(2, 3, 3, stride=2, padding=1)
    ours = nn.ConvTranspose1d(2, 3, 3, stride=2, padding=1)
    ours.load_state_dict(theirs.state_dict())
    x = data(1, 2, 4)
    with torch.no_grad():
        for size in (None, [7], [8], [1, 3, 7], torch.Size([1, 3, 8])):
            close(ours(x, size), theirs(x, size))
        for size in ([8], [3, 7]):
            close(ours(x[0], size), theirs(x[0], size))
    assert nn.Conv1d(2, 3, 3, stride=2, padding=1).in_channels == 2 and ours(x).shape == (1, 3, 7) and ours(x, [8]).shape == (1, 3, 8)
    for size in ((6,), (9,)):
        with pytest.raises(ValueError) as found, torch.no_grad():
            theirs(x, size)
        with pytest.raises(ValueError) as said:
            ours(x, size)
        assert str(found.value) in str(said.value)


@pytest.mark.parametrize("seed", range(20))
def test_output_size_with_dilation(seed):
    random = np.random.default_rng(seed)
    k, s, d = ([int(random.integers(1, 4)) for _ in range(2)] for _ in range(3))
    p = [int(random.integers(0, dd * (kk - 1) + 1)) for dd, kk in zip(d, k)]
    theirs = torch.nn.ConvTranspose2d(3, 4, k, stride=s, padding=p, dilation=d)
    ours = nn.ConvTranspose2d(3, 4, k, stride=s, padding=p, dilation=d)
    ours.load_state_dict(theirs.state_dict())
    x = data(2, 3, 6, 7)
    least = [(size - 1) * ss - 2 * pp + dd * (kk - 1) + 1 for size, ss, pp, dd, kk in zip((6, 7), s, p, d, k)]
    wanted = [size + int(random.integers(0, ss)) for size, ss in zip(least, s)]
    with torch.no_grad():
        close(ours(x, wanted), theirs(x, wanted))


def test_as_large_as_a_skip_connection_at_any_size():
    theirs = torch.nn.ConvTranspose2d(4, 5, 3, stride=2, padding=1)
    ours = nn.ConvTranspose2d(4, 5, 3, stride=2, padding=1)
    ours.load_state_dict(theirs.state_dict())
    net = polyphase.Network()
    x, skip = net.add_input("x", "float32", (1, 4, "H", "W")), net.add_input("skip", "float32", (1, 5, "A", "B"))
    net.mark_output(ours(x, output_size=skip), "y")
    engine = net.compile()
    for sizes in ((7, 9), (8, 10), (7, 10)):
        x, skip = data(1, 4, 4, 5), data(1, 5, *sizes)
        with torch.no_grad():
            close(engine(x, skip), theirs(x, output_size=skip.shape[2:]))


def test_other_layers():
    check(nn.LayerNorm(8), torch.nn.LayerNorm(8), data(3, 8))
    check(nn.LayerNorm((4, 8), elementwise_affine=False), torch.nn.LayerNorm((4, 8), elementwise_affine=False), data(3, 4, 8))
    check(nn.RmsNorm(8), torch.nn.RMSNorm(8, eps=1e-6), data(3, 8))
    check(nn.GroupNorm(2, 6), torch.nn.GroupNorm(2, 6), data(3, 6, 5))
    check(nn.InstanceNorm(6, affine=True), torch.nn.InstanceNorm2d(6, affine=True), data(3, 6, 5, 4))
    check(nn.Linear(5, 7), torch.nn.Linear(5, 7), data(2, 3, 5))
    check(nn.Embedding(9, 4), torch.nn.Embedding(9, 4), torch.tensor([[1, 8], [0, 3]]))
    check(nn.Mish(), torch.nn.Mish(), data(3, 4))
    check(nn.AvgPool2d(3, 2, 1, True, False), torch.nn.AvgPool2d(3, 2, 1, True, False), data(2, 3, 8, 9))
    check(nn.Upsample(scale_factor=2, mode="bilinear"), torch.nn.Upsample(scale_factor=2, mode="bilinear"), data(1, 2, 4, 5))
    check(nn.Upsample((7, 9), mode="bicubic", align_corners=True), torch.nn.Upsample((7, 9), mode="bicubic", align_corners=True), data(1, 2, 4, 5))
    check(nn.PixelShuffle(3), torch.nn.PixelShuffle(3), data(2, 18, 4, 5))
    check(nn.PixelShuffle(2), torch.nn.PixelShuffle(2), data(8, 4, 5))
    for first in (False, True):
        theirs = torch.nn.MultiheadAttention(8, 2, batch_first=first)
        ours = nn.MultiHeadAttention(8, 2, batch_first=first)
        check(ours, theirs, data(3, 5, 8), data(*((3, 6) if first else (6, 5)), 8, seed=1), data(*((3, 6) if first else (6, 5)), 8, seed=2), pick=lambda y: y[0])


class OurGenerator(nn.Module):
    def __init__(self):
        self.body = nn.Sequential(nn.ConvTranspose2d(16, 8, 4, bias=False), nn.GroupNorm(2, 8), nn.Mish(), nn.ConvTranspose2d(8, 3, 4, stride=2, padding=1))
        self.heads = nn.ModuleList([nn.Conv2d(3, 2, 1), nn.Conv2d(3, 3, 1)])

    def forward(self, x):
        y = nn.functional.tanh(self.body(x))
        return tuple(head(y) for head in self.heads)


class TheirGenerator(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.ConvTranspose2d(16, 8, 4, bias=False), torch.nn.GroupNorm(2, 8), torch.nn.Mish(), torch.nn.ConvTranspose2d(8, 3, 4, stride=2, padding=1))
        self.heads = torch.nn.ModuleList([torch.nn.Conv2d(3, 2, 1), torch.nn.Conv2d(3, 3, 1)])

    def forward(self, x):
        y = torch.tanh(self.body(x))
        return tuple(head(y) for head in self.heads)


def test_a_checkpoint_of_the_same_architecture():
    ours, theirs = OurGenerator(), TheirGenerator()
    assert [name for name, _ in ours.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    assert [name for name, _ in ours.named_modules()] == [name for name, _ in theirs.named_modules()]
    x = data(2, 16, 1, 1)
    for _ in range(2):  # other weights are seen
        theirs = TheirGenerator()
        ours.load_state_dict(theirs.state_dict())
        with torch.no_grad():
            for found, want in zip(ours(x), theirs(x), strict=True):
                close(found, want)
    net = polyphase.Network()
    a, b = ours(net.add_input("x", "float32", ("N", 16, 1, 1)))
    net.mark_output(a, "a")
    net.mark_output(b, "b")
    engine = net.compile(refittable=True)
    assert {name for weight in engine.info()["weights"] for name in weight["names"]} >= {name for name, _ in theirs.named_parameters()}
    theirs = TheirGenerator()
    engine.refit({name: value.detach().numpy() for name, value in theirs.state_dict().items()})
    with torch.no_grad():
        for found, want in zip(engine(x), theirs(x), strict=True):
            close(found, want)


@pytest.mark.parametrize("normed", [weight_norm, parametrizations.weight_norm], ids=["weight_g", "parametrizations"])
@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.filterwarnings("ignore:.*weight_norm.*")
def test_weight_norm(normed, dim):
    theirs = torch.nn.Sequential(normed(torch.nn.ConvTranspose1d(4, 5, 4, 2, 1), dim=dim), torch.nn.Mish(), normed(torch.nn.Conv1d(5, 2, 3)))
    ours = nn.Sequential(nn.ConvTranspose1d(4, 5, 4, 2, 1), nn.Mish(), nn.Conv1d(5, 2, 3))
    check(ours, theirs, data(1, 4, 6))
    alone = normed(torch.nn.Conv1d(5, 2, 3))
    single = nn.Conv1d(5, 2, 3)
    check(single, alone, data(1, 5, 6))


def test_every_wrong_key_is_named():
    ours = OurGenerator()
    state = TheirGenerator().state_dict()
    state["body.3.bias"] = torch.zeros(4)
    state["extra"] = state.pop("heads.0.weight")
    with pytest.raises(polyphase.ArgumentError) as said:
        ours.load_state_dict(state)
    assert said.value.message == ('Error(s) in loading state_dict for OurGenerator: Unexpected key(s) in state_dict: "extra". Missing key(s) in state_dict: "heads.0.weight". '
                                  "size mismatch for body.3.bias: copying a param with shape [4] from checkpoint, the shape in current model is [3].")
    assert all(parameter.value is None for name, parameter in ours.named_parameters() if name.startswith("heads")), "nothing is changed"
    del state["body.3.bias"]
    ours.load_state_dict(state, strict=False)
    with pytest.raises(polyphase.ArgumentError, match="parameter 'body.3.bias' of shape \\(3,\\) has no elements yet"):
        ours(data(1, 16, 1, 1))


@pytest.mark.parametrize("make, message", [
    (lambda kit: kit.ConvTranspose2d(3, 4, 3, padding_mode="reflect"), 'Only "zeros" padding mode is supported for ConvTranspose2d'),
    (lambda kit: kit.Conv2d(3, 4, 3, groups=0), "groups must be a positive integer"),
    (lambda kit: kit.Conv1d(3, 4, 3, groups=2), "in_channels must be divisible by groups"),
    (lambda kit: kit.ConvTranspose3d(4, 3, 3, groups=2), "out_channels must be divisible by groups"),
    (lambda kit: kit.GroupNorm(3, 4), "num_channels"),
], ids=["mode", "groups", "in", "out", "norm"])
def test_constructors_refuse_in_pytorchs_words(make, message):
    with pytest.raises(ValueError) as theirs:
        make(torch.nn)
    with pytest.raises(ValueError) as ours:
        make(nn)
    assert message in str(theirs.value) and str(theirs.value).split("(")[0] in str(ours.value)


def test_layers_by_themselves_in_one_network():
    net = polyphase.Network()
    x = net.add_input("x", "float32", (1, 3, 5))
    for i in range(3):
        layer = nn.Conv1d(3, 3, 1)
        layer.load_state_dict(torch.nn.Conv1d(3, 3, 1).state_dict())
        x = layer(layer(x))
    net.mark_output(x, "y")
    assert {name for weight in net.compile(refittable=True).info()["weights"] for name in weight["names"]} == {"weight", "bias", "weight.2", "bias.2", "weight.3", "bias.3"}


def test_calls_that_cannot_be():
    layer = nn.Conv2d(3, 4, 3)
    with pytest.raises(polyphase.ArgumentError, match="parameter 'weight' of shape \\(4, 3, 3, 3\\) has no elements yet"):
        layer(data(1, 3, 5, 5))
    layer.load_state_dict(torch.nn.Conv2d(3, 4, 3).state_dict())
    with pytest.raises(polyphase.Error, match="Given groups=1|channels"):
        layer(data(1, 2, 5, 5))
    with pytest.raises(polyphase.ArgumentError, match="neither tensors nor arrays"):
        layer(3)
    with pytest.raises(polyphase.ArgumentError, match="forward of Conv2d is called by itself"):
        layer.forward(data(1, 3, 5, 5))
    with pytest.raises(polyphase.ArgumentError, match="output_dtype is 'float64'"):
        nn.Cast("float64")
    with pytest.raises(polyphase.ArgumentError, match="expected \\(4, 3, 3, 3\\)"):
        layer.weight.value = np.zeros((1, 2), np.float32)


def filled(module):
    for parameter in module.parameters():
        parameter.value = np.ones(parameter.shape, np.float32)
    return module


def test_settings_of_a_layer_that_is_divided():
    first = filled(nn.Linear(3, 4))
    second = nn.Linear(3, 4, bias=False, tp_group=None, tp_size=1, share_weight=first.weight)
    assert second.weight is first.weight and second(data(2, 3)).shape == (2, 4)
    for make in (lambda: nn.Linear(3, 4, tp_size=2), lambda: nn.Embedding(3, 4, tp_size=2, tp_group=[0, 1])):
        with pytest.raises(polyphase.ArgumentError, match="A layer is of one process here"):
            make()
    with pytest.raises(polyphase.ArgumentError, match="expected a parameter of shape \\(4, 3\\)"):
        nn.Linear(3, 4, share_weight=nn.Linear(3, 5).weight)


@pytest.mark.parametrize("given", [lambda: np.array([17, 18]), lambda: torch.tensor([1, 4, 17, 18]), lambda: torch.Size([17, 18]), lambda: np.zeros((1, 2, 17, 18))])
def test_output_size_by_its_values_or_by_another_tensor(given):
    layer = filled(nn.ConvTranspose2d(3, 4, 3, stride=2))
    x = data(1, 3, 8, 8)
    assert layer(x, output_size=given()).shape == (1, 4, 17, 18)
    net = polyphase.Network()
    net.mark_output(layer(net.add_input("x", "float32", (1, 3, 8, 8)), given()), "y")
    assert net.compile()(x).shape == (1, 4, 17, 18)


def test_output_size_by_a_vector_that_a_run_tells():
    layer = filled(nn.ConvTranspose2d(3, 4, 3, stride=2))
    net = polyphase.Network()
    x, skip = net.add_input("x", "float32", (1, 3, "H", "W")), net.add_input("skip", "float32", (1, 2, "A", "B"))
    net.mark_output(layer(x, output_size=nn.functional.slice(nn.functional.shape(skip), [2], [2])), "y")
    engine = net.compile()
    for size in (17, 18):
        assert engine(data(1, 3, 8, 8), data(1, 2, size, 18)).shape == (1, 4, size, 18)
    with pytest.raises(polyphase.Error):
        engine(data(1, 3, 8, 8), data(1, 2, 19, 18))
    for wrong, said in ((17, "output_size is 17"), (np.array([17.0, 17.0], np.float32), "float32 with the sizes")):
        with pytest.raises(polyphase.ArgumentError, match=said):
            layer(data(1, 3, 8, 8), output_size=wrong)


@pytest.mark.parametrize("mode, padding", [("reflect", 8), ("reflect", 7), ("circular", 9), ("circular", 8), ("replicate", 20)])
def test_paddings_beyond_the_image(mode, padding):
    ours, theirs = (module.Conv2d(3, 1, 3, padding=padding, padding_mode=mode) for module in (nn, torch.nn))
    x = data(1, 3, 8, 8)
    try:
        theirs(x)
    except RuntimeError as error:
        with pytest.raises(polyphase.ArgumentError) as found:
            filled(ours)(x)
        assert found.value.message in str(error)
    else:
        check(ours, theirs, x)


@pytest.mark.parametrize("state, said", [
    ("file.pt", "Expected state_dict to be dict-like, got <class 'str'>"), (None, "got <class 'NoneType'>"), ({1: np.ones(1)}, "has the key 1"),
    ({"weight": 3, "bias": np.ones(4, np.float32)}, 'Missing key|size mismatch for weight|a int64|an int|size mismatch'), ({"weight": None, "bias": None}, 'a NoneType under "weight"'),
    ({"weight": "w", "bias": None}, 'a str under "weight"')])
def test_what_is_no_checkpoint(state, said):
    layer = nn.Conv2d(3, 4, 3)
    with pytest.raises(polyphase.ArgumentError, match=said):
        layer.load_state_dict(state)
    assert layer.weight.value is None


def test_lists_are_arrays_and_what_is_not_asked_for_may_be_anything():
    layer = nn.Linear(2, 1)
    layer.load_state_dict({"weight": [[1.0, 2.0]], "bias": np.zeros(1, np.float32), "epoch": 3}, strict=False)
    assert layer(np.ones((1, 2), np.float32)).tolist() == [[3.0]]
    with pytest.raises(polyphase.ArgumentError, match='Unexpected key\\(s\\) in state_dict: "epoch"'):
        layer.load_state_dict({"weight": [[1.0, 2.0]], "bias": np.zeros(1, np.float32), "epoch": 3})


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_weight_norm_keeps_the_checkpoints_dtype(dtype):
    theirs = parametrizations.weight_norm(torch.nn.ConvTranspose1d(2, 3, 3).to(dtype))
    ours = nn.ConvTranspose1d(2, 3, 3)
    ours.load_state_dict(theirs.state_dict())
    assert ours.weight.value.dtype == dtype and ours.bias.value.dtype == dtype
    torch.testing.assert_close(ours.weight.value, theirs.weight.detach(), atol=2e-2 if dtype != torch.float64 else 1e-12, rtol=1e-2)
