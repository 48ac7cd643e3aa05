"""The layers of polyphase/nn.h against torch.nn: results with the same checkpoint, and what they write against Python's layers; errors in the same words."""

from __future__ import annotations

import io
import json
import os
import pathlib
import subprocess
import zipfile

import numpy as np
import polyphase
import pytest
import torch
from polyphase import nn
from safetensors_file import safetensors
from test_cpp_functional import in_cpp_words, without_absent
from test_layers import OurGenerator, TheirGenerator
from torch.nn.utils import parametrizations, weight_norm

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = pathlib.Path(os.environ.get("POLYPHASE_BUILD", ROOT / "build/release")).resolve() / "tests/api/nn_layer_calls"
DTYPES = {"f32": torch.float32, "i8": torch.int8, "f16": torch.float16}


def data(*sizes, seed=0) -> torch.Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


def in_cpp(calls, folder) -> list[dict]:
    """(layer, arguments, state_dict or None, inputs) each."""
    described = []
    for i, (layer, arguments, state, xs) in enumerate(calls):
        call = {"f": layer, "arguments": arguments, "arrays": str(safetensors(folder / f"arrays{i}", {f"x{k}": x for k, x in enumerate(xs)}))}
        if state is not None:
            call["weights"] = str(state if isinstance(state, pathlib.Path) else safetensors(folder / f"weights{i}", state))
        described.append(call)
    done = subprocess.run([PROGRAM], input=json.dumps(described), capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def result_of(said) -> torch.Tensor:
    assert "message" not in said, said
    return torch.frombuffer(bytearray(said["bytes"]), dtype=DTYPES[said["dtype"]]).reshape(said["sizes"])


def text_in_python(ours, state, xs, **settings) -> str:
    if state is not None:
        ours.load_state_dict(state)
    net = polyphase.Network()
    ours(*[net.add_input(f"x{i}", x.dtype, tuple(x.shape)) for i, x in enumerate(xs)], **settings)
    return net.text()


def check(cases, folder, atol=1e-4):
    """(layer, arguments, PyTorch's module, inputs): the same numbers as PyTorch, the same layers as Python, the same parameters as both."""
    calls = [(layer, arguments, theirs.state_dict(), xs) for layer, arguments, theirs, *xs in cases]
    for (layer, arguments, state, xs), (_, _, theirs, *_), said in zip(calls, cases, in_cpp(calls, folder), strict=True):
        settings = {name: value for name, value in arguments.items() if name == "output_size"}
        plain = {name: value for name, value in arguments.items() if name != "output_size"}
        with torch.no_grad():
            want = theirs.eval()(*xs, **settings)
        want = want[0] if isinstance(want, tuple) else want
        found = result_of(said)
        assert found.shape == want.shape and found.dtype == want.dtype, (layer, arguments)
        torch.testing.assert_close(found, want, atol=atol, rtol=1e-4)
        assert said["parameters"] == [[name, list(one.shape)] for name, one in theirs.named_parameters()]
        assert said["modules"] == [name for name, _ in theirs.named_modules()]
        made = getattr(nn, layer)(**plain)
        assert without_absent(said)["text"] == without_absent({"text": text_in_python(made, state, xs, **settings)})["text"], (layer, arguments)


def drawn_windows(seed):
    random = np.random.default_rng(seed)
    spatial, groups = seed % 3 + 1, int(random.choice([1, 2]))
    numbers = lambda low, high: int(random.integers(low, high)) if random.random() < 0.5 else [int(random.integers(low, high)) for _ in range(spatial)]  # noqa: E731
    sizes = [int(random.integers(6, 10)) for _ in range(spatial)]
    settings = {"in_channels": 2 * groups, "out_channels": 3 * groups, "kernel_size": numbers(2, 4), "stride": numbers(1, 4), "dilation": numbers(1, 3), "groups": groups, "bias": bool(seed % 2)}
    x = data(*([2] if seed % 4 else []), 2 * groups, *sizes, seed=seed)
    conv = settings | {"padding": numbers(0, 3), "padding_mode": str(random.choice(["zeros", "reflect", "replicate", "circular"]))}
    yield f"Conv{spatial}d", conv, getattr(torch.nn, f"Conv{spatial}d")(**conv), x
    each = {name: [value] * spatial if isinstance(value, int) else value for name, value in settings.items() if name in ("kernel_size", "stride", "dilation")}
    padding = [int(random.integers(0, d * (k - 1) + 1)) for k, d in zip(each["kernel_size"], each["dilation"])]
    longer = [int(random.integers(0, max(s, d))) for s, d in zip(each["stride"], each["dilation"])]
    up = settings | {"padding": padding, "output_padding": longer}
    yield f"ConvTranspose{spatial}d", up, getattr(torch.nn, f"ConvTranspose{spatial}d")(**up), x
    least = [(size - 1) * s - 2 * p + d * (k - 1) + 1 for size, s, p, d, k in zip(sizes, each["stride"], padding, each["dilation"], each["kernel_size"])]
    size = [one + int(random.integers(0, s)) for one, s in zip(least, each["stride"])]
    if all(one > 0 for one in size):
        theirs = getattr(torch.nn, f"ConvTranspose{spatial}d")(**{name: value for name, value in up.items() if name != "output_padding"})
        yield f"ConvTranspose{spatial}d", {name: value for name, value in up.items() if name != "output_padding"} | {"output_size": size}, theirs, x


@pytest.mark.parametrize("block", range(4))
def test_drawn_convolutions(block, tmp_path):
    check([case for seed in range(12) for case in drawn_windows(12 * block + seed)], tmp_path)


def test_other_layers(tmp_path):
    attention = lambda **settings: torch.nn.MultiheadAttention(8, 2, **settings)  # noqa: E731
    check([
        ("LayerNorm", {"normalized_shape": 8}, torch.nn.LayerNorm(8), data(3, 8)),
        ("LayerNorm", {"normalized_shape": [4, 8], "elementwise_affine": False, "eps": 1e-2}, torch.nn.LayerNorm((4, 8), 1e-2, elementwise_affine=False), data(3, 4, 8)),
        ("RmsNorm", {"normalized_shape": 8}, torch.nn.RMSNorm(8, eps=1e-6), data(3, 8)),
        ("GroupNorm", {"num_groups": 2, "num_channels": 6}, torch.nn.GroupNorm(2, 6), data(3, 6, 5)),
        ("GroupNorm", {"num_groups": 3, "num_channels": 6, "affine": False}, torch.nn.GroupNorm(3, 6, affine=False), data(3, 6, 5, 4)),
        ("InstanceNorm", {"num_features": 6, "affine": True}, torch.nn.InstanceNorm2d(6, affine=True), data(3, 6, 5, 4)),
        ("InstanceNorm", {"num_features": 6}, torch.nn.InstanceNorm3d(6), data(3, 6, 5, 4, 3)),
        ("Linear", {"in_features": 5, "out_features": 7}, torch.nn.Linear(5, 7), data(2, 3, 5)),
        ("Linear", {"in_features": 5, "out_features": 7, "bias": False}, torch.nn.Linear(5, 7, bias=False), data(5)),
        ("Embedding", {"num_embeddings": 9, "embedding_dim": 4}, torch.nn.Embedding(9, 4), torch.tensor([[1, 8], [0, 3]])),
        ("Mish", {}, torch.nn.Mish(), data(3, 4)),
        ("AvgPool2d", {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False}, torch.nn.AvgPool2d(3, 2, 1, True, False), data(2, 3, 8, 9)),
        ("AvgPool2d", {"kernel_size": [2, 3]}, torch.nn.AvgPool2d((2, 3)), data(3, 8, 9)),
        ("Upsample", {"scale_factor": 2, "mode": "bilinear"}, torch.nn.Upsample(scale_factor=2, mode="bilinear"), data(1, 2, 4, 5)),
        ("Upsample", {"size": [7, 9], "mode": "bicubic", "align_corners": True}, torch.nn.Upsample((7, 9), mode="bicubic", align_corners=True), data(1, 2, 4, 5)),
        ("PixelShuffle", {"upscale_factor": 3}, torch.nn.PixelShuffle(3), data(2, 18, 4, 5)),
        ("PixelShuffle", {"upscale_factor": 2}, torch.nn.PixelShuffle(2), data(8, 4, 5)),
        ("MultiHeadAttention", {"embed_dim": 8, "num_heads": 2}, attention(), data(3, 5, 8), data(6, 5, 8, seed=1), data(6, 5, 8, seed=2)),
        ("MultiHeadAttention", {"embed_dim": 8, "num_heads": 2, "bias": False, "batch_first": True}, attention(bias=False, batch_first=True), data(3, 5, 8), data(3, 6, 8, seed=1),
         data(3, 6, 8, seed=2)),
    ], tmp_path)


def test_output_size(tmp_path):
    """conv k3 s2 p1: 7 → 4; the deconvolution 4 → 7, with output_padding 1 or output_size 8 → 8; as large as another tensor."""
    settings = {"in_channels": 2, "out_channels": 3, "kernel_size": 3, "stride": 2, "padding": 1}
    theirs, x = torch.nn.ConvTranspose1d(**settings), data(1, 2, 4)
    state = theirs.state_dict()
    sizes = [None, [7], [8], [1, 3, 7], [1, 3, 8], [3, 8]]
    calls = [("ConvTranspose1d", settings | ({} if size is None else {"output_size": size}), state, [x[0] if size == [3, 8] else x]) for size in sizes]
    calls += [("ConvTranspose1d", settings, state, [x, torch.zeros(1, 3, size)]) for size in (7, 8)]
    calls += [("ConvTranspose1d", settings | {"output_padding": 1}, state, [x]), ("Conv1d", settings | {"in_channels": 3, "out_channels": 2}, state | {"bias": torch.zeros(2)}, [data(1, 3, 7)])]
    said = in_cpp(calls, tmp_path)
    with torch.no_grad():
        for one, size in zip(said, [*sizes, [7], [8], [8]]):
            torch.testing.assert_close(result_of(one), theirs(x[0] if size == [3, 8] else x, size), atol=1e-5, rtol=1e-5)
    assert said[-1]["sizes"] == [1, 2, 4]
    for size in (6, 9):
        with pytest.raises(ValueError) as found, torch.no_grad():
            theirs(x, (size,))
        refused, = in_cpp([("ConvTranspose1d", settings | {"output_size": [size]}, state, [x])], tmp_path)
        assert str(found.value) in refused["message"]


def test_cast_to_int8_quantises(tmp_path):
    x = torch.tensor([1.5, 2.5, -2.5, 130.0, -129.0, 126.6, float("nan"), float("inf"), -float("inf"), 0.4])
    said, plain = in_cpp([("Cast", {"output_dtype": "i8"}, None, [x]), ("Cast", {}, None, [x.half()])], tmp_path)
    assert result_of(said).tolist() == [2, 2, -2, 127, -127, 127, 0, 127, -127, 0]
    assert plain["dtype"] == "f32"


# ---------------------------------------------------------------- networks


class TheirBlock(torch.nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(a, b, 3, padding=1, padding_mode="reflect"), torch.nn.GroupNorm(2, b)

    def forward(self, x):
        return torch.nn.functional.silu(self.norm(self.conv(x)))


class TheirUNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.down, self.middle = TheirBlock(3, 8), torch.nn.Conv2d(8, 12, 3, 2, 1), TheirBlock(12, 12)
        self.up, self.last, self.head = torch.nn.ConvTranspose2d(12, 8, 3, 2, 1), TheirBlock(16, 8), torch.nn.Conv2d(8, 1, 1)

    def forward(self, x):
        skip = self.first(x)
        return self.head(self.last(torch.cat([self.up(self.middle(self.down(skip)), skip.shape[2:]), skip], 1)))


def test_networks_with_a_checkpoint(tmp_path):
    generator, net = TheirGenerator().eval(), TheirUNet().eval()
    x, images = data(2, 16, 1, 1), [data(1, 3, 9, 12), data(2, 3, 8, 11)]
    said = in_cpp([("Generator", {}, generator.state_dict(), [x]), *[("UNet", {}, net.state_dict(), [image]) for image in images]], tmp_path)
    with torch.no_grad():
        torch.testing.assert_close(result_of(said[0]), torch.cat(generator(x), 1), atol=1e-4, rtol=1e-4)
        for one, image in zip(said[1:], images):
            torch.testing.assert_close(result_of(one), net(image), atol=1e-4, rtol=1e-4)
    for one, theirs in ((said[0], generator), (said[1], net)):
        assert one["parameters"] == [[name, list(parameter.shape)] for name, parameter in theirs.named_parameters()]
        assert one["modules"] == [name for name, _ in theirs.named_modules()]
        for name, _ in theirs.named_parameters():
            assert f"%{name} = constant()" in one["text"], "constants have the parameters' names"


@pytest.mark.parametrize("normed", [weight_norm, parametrizations.weight_norm], ids=["weight_g", "parametrizations"])
@pytest.mark.filterwarnings("ignore:.*weight_norm.*")
def test_weight_norm(normed, tmp_path):
    cases = []
    for dim in (0, 1, None):
        cases.append((("ConvTranspose1d", {"in_channels": 4, "out_channels": 5, "kernel_size": 4, "stride": 2, "padding": 1}), normed(torch.nn.ConvTranspose1d(4, 5, 4, 2, 1), dim=dim), data(1, 4, 6)))
        cases.append((("Linear", {"in_features": 6, "out_features": 3}), normed(torch.nn.Linear(6, 3), dim=dim), data(2, 6)))
        inside = TheirGenerator().eval()
        inside.heads[1] = normed(inside.heads[1], dim=dim)
        cases.append((("Generator", {}), inside, data(1, 16, 1, 1)))
    said = in_cpp([(*layer, theirs.state_dict(), [x]) for layer, theirs, x in cases], tmp_path)
    for one, (_, theirs, x) in zip(said, cases, strict=True):
        with torch.no_grad():
            want = theirs(x)
        torch.testing.assert_close(result_of(one), torch.cat(want, 1) if isinstance(want, tuple) else want, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_weights_out_of_numpys_archives(save, order, tmp_path):
    cases = [("ConvTranspose2d", {"in_channels": 3, "out_channels": 4, "kernel_size": [3, 2], "stride": 2}, torch.nn.ConvTranspose2d(3, 4, (3, 2), 2), data(1, 3, 5, 5)),
             ("Linear", {"in_features": 3, "out_features": 4}, torch.nn.Linear(3, 4), data(2, 3)), ("LayerNorm", {"normalized_shape": 5}, torch.nn.LayerNorm(5), data(2, 5))]
    calls = []
    for i, (layer, arguments, theirs, x) in enumerate(cases):
        path = tmp_path / f"w{i}.npz"
        save(path, **{name: np.asarray(value, order=order) for name, value in theirs.state_dict().items()})
        calls.append((layer, arguments, path, [x]))
    for (_, _, theirs, x), said in zip(cases, in_cpp(calls, tmp_path), strict=True):
        torch.testing.assert_close(result_of(said), theirs(x).detach(), atol=1e-4, rtol=1e-4)


# ---------------------------------------------------------------- errors


def archive_of(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def npy(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_archives_that_are_none(tmp_path):
    weight, bias = npy(np.ones((4, 3, 3, 3), np.float32)), npy(np.zeros(4, np.float32))
    members = [
        ("is of type >f4. Convert", npy(np.zeros(4, ">f4"))), ("is of type |O.", npy(np.array([{}] * 4, object))), ("is of type [('a', '<f4')].", npy(np.zeros(4, [("a", "<f4")]))),
        ("has fewer elements than its shape", bias[:-1]), ("has fewer elements than its shape", npy(np.array(1.0))[:-1]), ("ends inside of its header", bias[:40]),
        ("does not begin as one", b"no array at all"), ("is of version 9 of the format", b"\x93NUMPY\x09\x00" + bias[8:]),
        ("has a header that lacks a size of 0 or more at character", bias.replace(b"(4,)", b"(-4)")), ("has a header of other keys", bias.replace(b"'shape'", b"'sharp'")),
        ("lacks descr, fortran_order and shape", b"\x93NUMPY\x01\x00\x0d\x00{'descr':'x'}"), ("lacks True or False", bias.replace(b"False", b"Maybe")),
    ]
    calls = []
    for i, (_, bad) in enumerate(members):
        calls.append(("Conv2d", CONV, archive_of(tmp_path / f"bad{i}.npz", {"weight.npy": weight, "bias.npy": bad}), [data(1, 3, 5, 5)]))
    for (words, _), said in zip(members, in_cpp(calls, tmp_path), strict=True):
        assert words in f"{said.get('message')} {said.get('hint')}", (words, said)
    torch.save({"weight": torch.ones(2)}, tmp_path / "w.pt")
    whole = archive_of(tmp_path / "whole.npz", {"weight.npy": weight, "bias.npy": bias}).read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[:300])
    damaged = bytearray(whole)
    damaged[whole.index(weight) + 200] ^= 1
    (tmp_path / "damaged.npz").write_bytes(damaged)
    files = {"w.pt": "the archive is no .npz: it has a member", "cut.npz": "the archive cannot be read", "damaged.npz": "member 'weight.npy' of the archive is damaged"}
    for words, said in zip(files.values(), in_cpp([("Conv2d", CONV, tmp_path / name, [data(1, 3, 5, 5)]) for name in files], tmp_path), strict=True):
        assert words in said.get("message", ""), said


def test_every_wrong_key_is_named(tmp_path):
    state = TheirGenerator().state_dict()
    state["body.3.bias"] = torch.zeros(4)
    state["extra"] = state.pop("heads.0.weight")
    said, = in_cpp([("Generator", {}, state, [data(1, 16, 1, 1)])], tmp_path)
    with pytest.raises(polyphase.ArgumentError) as ours:
        OurGenerator().load_state_dict(state)
    assert (said["message"], said["hint"]) == (ours.value.message, ours.value.hint)
    with pytest.raises(RuntimeError) as theirs:
        TheirGenerator().load_state_dict(state)
    for words in ('"extra"', '"heads.0.weight"', "size mismatch for body.3.bias"):
        assert words in str(theirs.value) and words in said["message"]


CONV = {"in_channels": 3, "out_channels": 4, "kernel_size": 3}
REFUSED = [
    ("Conv2d", CONV | {"groups": 0}), ("Conv1d", CONV | {"groups": 2}), ("ConvTranspose3d", CONV | {"in_channels": 4, "out_channels": 3, "groups": 2}),
    ("ConvTranspose2d", CONV | {"padding_mode": "reflect"}), ("Conv2d", CONV | {"padding_mode": "mirror"}), ("Conv2d", CONV | {"kernel_size": [3, 3, 3]}),
    ("ConvTranspose1d", CONV | {"output_padding": [1, 1]}), ("GroupNorm", {"num_groups": 3, "num_channels": 4}), ("MultiHeadAttention", {"embed_dim": 8, "num_heads": 3}),
    ("Conv2d", CONV | {"out_channels": -4}), ("ConvTranspose1d", CONV | {"kernel_size": -1}), ("PixelShuffle", {"upscale_factor": 0}), ("Cast", {"output_dtype": "f64"}),
]


def test_refusals_are_in_pythons_words(tmp_path):
    said = in_cpp([(layer, arguments, None, [data(1, 3, 5, 5)]) for layer, arguments in REFUSED], tmp_path)
    for (layer, arguments), one in zip(REFUSED, said, strict=True):
        arguments = {name: {"f64": "float64"}.get(value, value) if name == "output_dtype" else value for name, value in arguments.items()}
        with pytest.raises(polyphase.ArgumentError) as ours:
            getattr(nn, layer)(**arguments)
        assert (one.get("message"), one.get("hint")) == (ours.value.message, ours.value.hint)


def test_calls_that_cannot_be(tmp_path):
    state, shuffle = torch.nn.Conv2d(3, 4, 3).state_dict(), {"upscale_factor": 2}
    calls = [("Conv2d", CONV, None, [data(1, 3, 5, 5)]), ("Linear", {"in_features": 3, "out_features": 4, "bias": False}, None, [data(3)]), ("Conv2d", CONV, state, [data(1, 2, 5, 5)]),
             ("Conv2d", CONV, state, [data(1, 3, 5, 5, 5)]), ("PixelShuffle", shuffle, None, [data(6, 2, 2)]), ("Upsample", {}, None, [data(1, 2, 3)]),
             ("LayerNorm", {"normalized_shape": 4}, None, [data(2, 5)])]
    for (layer, arguments, weights, xs), one in zip(calls, in_cpp(calls, tmp_path), strict=True):
        with pytest.raises(polyphase.Error) as ours:
            text_in_python(getattr(nn, layer)(**arguments), weights, xs)
        assert (one.get("message"), one.get("hint")) == (in_cpp_words(ours.value.message), in_cpp_words(ours.value.hint))
