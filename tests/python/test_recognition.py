"""What exporters decompose is recognised: attention runs as one step, without its matrix of scores; an inverse STFT as a transposed convolution;
modulated convolutions run on constant weights; branches that are added are one convolution."""

from __future__ import annotations

import json
import random

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from conftest import wants_full
from export import EXPORTERS, export_onnx
from networks import Family, trained_like
from test_families import check_numbers


def split(x: torch.Tensor, heads: int) -> torch.Tensor:
    return x.view(x.shape[0], -1, heads, x.shape[2] // heads).transpose(1, 2)


class Packed(nn.Module):
    """Q, K and V of one product, through PyTorch's own attention; with a mask, or causal."""

    def __init__(self, mask: str = "none"):
        super().__init__()
        self.qkv, self.out, self.mask = nn.Linear(32, 96), nn.Linear(32, 32), mask

    def forward(self, x):
        q, k, v = self.qkv(x).view(x.shape[0], -1, 3, 4, 8).permute(2, 0, 3, 1, 4)
        hidden = {"none": None, "causal": None, "bool": x[:, None, None, :, 0] > -2.0, "float": x[:, None, :, :1] * x[:, None, None, :, 0]}[self.mask]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=hidden, is_causal=self.mask == "causal")
        return self.out(y.transpose(1, 2).reshape(x.shape[0], -1, 32))


class MultiHead(nn.Module):
    """nn.MultiheadAttention, with or without the weights that nobody reads."""

    def __init__(self, need_weights: bool):
        super().__init__()
        self.attention, self.need_weights = nn.MultiheadAttention(32, 4, batch_first=True), need_weights

    def forward(self, x):
        return self.attention(x, x, x, need_weights=self.need_weights)[0]


class ByHand(nn.Module):
    """Quotient, selecting mask and softmax, written out."""

    def forward(self, x):
        q = split(x, 4)
        scores = (q @ q.transpose(-1, -2)) / 8**0.5
        scores = scores.masked_fill(x[:, None, None, :, 0] > 2.5, float("-inf"))
        return (torch.softmax(scores, -1) @ q).transpose(1, 2).flatten(2)


class Batched(nn.Module):
    """Heads put into the batch; scores take the mask apart from it."""

    def forward(self, x):
        batch, length = x.shape[0], x.shape[1]
        q = split(x, 4).reshape(batch * 4, -1, 8)
        scores = torch.bmm(q * 8**-0.5, q.transpose(1, 2)).view(batch, 4, length, length)
        scores = (scores + x[:, None, None, :, 1]).view(batch * 4, length, length)
        y = torch.bmm(F.dropout(torch.softmax(scores, -1), training=False), q)
        return y.view(batch, 4, length, 8).transpose(1, 2).reshape(batch, length, 32)


class Pixels(nn.Module):
    """The block in the middle of an image decoder: one head over all pixels, values before the weights."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Conv2d(16, 16, 1) for _ in range(3))

    def forward(self, x):
        n, c, h, w = x.shape
        q = self.q(x).reshape(n, c, h * w).permute(0, 2, 1)
        weights = torch.softmax(torch.bmm(q, self.k(x).reshape(n, c, h * w)) * c**-0.5, dim=2)
        return x + torch.bmm(self.v(x).reshape(n, c, h * w), weights.permute(0, 2, 1)).reshape(n, c, h, w)


class Windows(nn.Module):
    """Attention within shifted windows (Liu et al. 2022): cosines times a factor of each head, a bias of the heads, a mask of the windows."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(32, 96)
        self.factor, self.bias = nn.Parameter(torch.rand(4, 1, 1) + 0.5), nn.Parameter(torch.randn(4, 6, 6))
        self.register_buffer("mask", torch.where(torch.randn(3, 6, 6) > 1, -100.0, 0.0))

    def forward(self, x):
        n, windows, places, _ = x.shape
        q, k, v = self.qkv(x).view(n * windows, places, 3, 4, 8).permute(2, 0, 3, 1, 4)
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1) * self.factor + self.bias
        scores = scores.view(n, windows, 4, places, places) + self.mask[None, :, None]
        y = torch.softmax(scores.view(n * windows, 4, places, places), -1) @ v
        return y.transpose(1, 2).reshape(n, windows, places, 32)


FORMS = {
    "packed": Packed,
    "bool": lambda: Packed("bool"),
    "float": lambda: Packed("float"),
    "causal": lambda: Packed("causal"),
    "multi_head": lambda: MultiHead(False),
    "multi_head_weights": lambda: MultiHead(True),
    "by_hand": ByHand,
    "batched": Batched,
    "pixels": Pixels,
    "windows": Windows,
}


def family_of(form: str) -> Family:
    torch.manual_seed(5)
    if form == "pixels":
        inputs, others, axes = (2, 16, 9, 11), (1, 16, 7, 5), {2: "h", 3: "w"}
    elif form == "windows":
        inputs, others, axes = (2, 3, 6, 32), (5, 3, 6, 32), {}
    else:
        inputs, others, axes = (2, 37, 32), (3, 150, 32), {1: "length"}
    return Family(FORMS[form]().eval(), {"x": torch.randn(inputs)}, {"x": {0: "n", **axes}}, {"x": torch.randn(others)})


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        cases = [(form, exporter, dynamic) for form in FORMS for exporter in EXPORTERS for dynamic in (False, True)]
        # The older exporter writes the length that it saw into the reshapes of nn.MultiheadAttention.
        cases = [case for case in cases if not (case[0].startswith("multi_head") and case[1:] == ("torchscript", True))]
        if not wants_full(metafunc.config):
            cases = random.Random(metafunc.config.getoption("--slice-seed")).sample(cases, 5)
        metafunc.parametrize("case", cases, ids=["-".join([f, e, "dynamic" if d else "static"]) for f, e, d in cases])


    if "spectra" in metafunc.fixturenames:
        cases = [(form, points, hop, dynamic) for form, points, hop in ((InverseStft, 16, 4), (FoldedFrames, 60, 15)) for dynamic in (False, True)]
        if not wants_full(metafunc.config):
            cases = random.Random(metafunc.config.getoption("--slice-seed")).sample(cases, 2)
        metafunc.parametrize("spectra", cases, ids=["-".join([f.__name__, "dynamic" if d else "static"]) for f, _, _, d in cases])


@pytest.fixture(autouse=True)
def written_out():
    """Without PyTorch's fused attention of eager mode, which its older exporter does not know."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    yield
    torch.backends.mha.set_fastpath_enabled(before)


def test_attention(case, polyphase, tmp_path, record_property):
    form, exporter, dynamic = case
    family = family_of(form)
    model = export_onnx(family, tmp_path / "model.onnx", exporter, dynamic)
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    polyphase("compile", model, "-o", tmp_path / "model.ppe")
    steps = json.loads(polyphase("inspect", tmp_path / "model.ppe", "--json").stdout)["steps"]
    operations = [step["operation"] for step in steps]
    assert operations.count("attention") == 1 and not any("softmax" in each for each in operations), operations
    assert not [step["node"] for step in steps if step["reference"]]
    module64 = family_of(form).module.double()
    for inputs in (family.inputs, family.other_inputs) if dynamic else (family.inputs,):
        check_numbers(polyphase, tmp_path / "model.ppe", session, module64, inputs, tmp_path, lambda text: record_property("error", text))


def test_scores_are_never_whole(polyphase, tmp_path):
    """4096 places of one head: their scores alone would be 64 MiB."""
    family = Family(ByHand(), {"x": torch.randn(1, 1024, 32)}, {}, {})
    model = export_onnx(family, tmp_path / "model.onnx", "torchscript", False)
    report = json.loads(polyphase("inspect", model, "--json").stdout)
    largest = max(int(np.prod([int(size) for size in value["sizes"]])) for value in report["values"])
    assert largest <= 4 * 1024 * 32, f"a value of {largest} elements: 4 heads of scores would be {4 * 1024 * 1024}"


class Modulated(nn.Module):
    """StyleGAN2's synthesis (Karras et al. 2020) as its authors write it: each image of the batch has weights of its own, and is a group."""

    def __init__(self, batch: int, transposed: bool, demodulates: bool, biased: bool):
        super().__init__()
        self.batch, self.transposed, self.demodulates = batch, transposed, demodulates
        self.weight, self.style = nn.Parameter(torch.randn(40, 24, 3, 3)), nn.Linear(16, 24)
        self.bias = nn.Parameter(torch.randn(40 * batch)) if biased else None

    def forward(self, x, z):
        w = self.weight.unsqueeze(0) * (1 + self.style(z)).reshape(self.batch, 1, 24, 1, 1)
        if self.demodulates:
            w = w * (w.square().sum(dim=[2, 3, 4]) + 1e-8).rsqrt().reshape(self.batch, 40, 1, 1, 1)
        images = x.reshape(1, self.batch * 24, *x.shape[2:])
        if self.transposed:
            w = w.transpose(1, 2).reshape(self.batch * 24, 40, 3, 3)
            y = F.conv_transpose2d(images, w, self.bias, stride=2, groups=self.batch)
        else:
            y = F.conv2d(images, w.reshape(self.batch * 40, 24, 3, 3), self.bias, padding=1, groups=self.batch)
        return y.reshape(self.batch, 40, *y.shape[2:])


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("batch,transposed,demodulates,biased", [(1, False, True, True), (1, True, True, False), (3, False, True, False), (3, True, True, True), (3, False, False, True)])
def test_modulated_weights_are_constant(batch, transposed, demodulates, biased, exporter, polyphase, tmp_path, record_property):
    torch.manual_seed(3)
    module = Modulated(batch, transposed, demodulates, biased).eval()
    family = Family(module, {"x": torch.randn(batch, 24, 9, 11), "z": torch.randn(batch, 16)}, {}, {})
    model = export_onnx(family, tmp_path / "model.onnx", exporter, False)
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    polyphase("compile", model, "-o", tmp_path / "model.ppe")
    report = json.loads(polyphase("inspect", tmp_path / "model.ppe", "--json").stdout)
    operations = [step["operation"] for step in report["steps"]]
    assert not any("reduce_sum" in each for each in operations), operations
    elements = [np.prod([int(size) for size in value["sizes"]], dtype=int) for value in report["values"]]
    computed = [step["operation"] for step in report["steps"] if elements[step["outputs"][0]] == batch * 40 * 24 * 9]
    assert not computed, f"steps that compute weights: {computed}"
    module64 = Modulated(batch, transposed, demodulates, biased).double()
    module64.load_state_dict(module.state_dict())
    check_numbers(polyphase, tmp_path / "model.ppe", session, module64, family.inputs, tmp_path, lambda text: record_property("error", text))


class Branches(nn.Module):
    """A block of RepVGG (Ding et al. 2021) or MobileOne as it is trained: convolutions of two sizes and the image itself, each with its norm."""

    def __init__(self, groups: int, stride: int):
        super().__init__()
        self.wide = nn.Sequential(nn.Conv2d(12, 12, 3, stride, 1, groups=groups, bias=False), nn.BatchNorm2d(12))
        self.narrow = nn.Sequential(nn.Conv2d(12, 12, 1, stride, groups=groups, bias=False), nn.BatchNorm2d(12))
        self.own = nn.BatchNorm2d(12) if stride == 1 else None

    def forward(self, x):
        y = self.wide(x) + self.narrow(x)
        return torch.relu(y if self.own is None else y + self.own(x))


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("groups,stride,dynamic", [(1, 1, False), (3, 1, True), (12, 1, False), (1, 2, True), (12, 2, False)])
def test_branches_are_one_convolution(groups, stride, dynamic, exporter, polyphase, tmp_path, record_property):
    torch.manual_seed(3)
    module = trained_like(Branches(groups, stride), 4)
    family = Family(module, {"x": torch.randn(2, 12, 9, 11)}, {"x": {0: "n", 2: "h", 3: "w"}}, {})
    model = export_onnx(family, tmp_path / "model.onnx", exporter, dynamic)
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    polyphase("compile", model, "-o", tmp_path / "model.ppe")
    operations = [step["operation"] for step in json.loads(polyphase("inspect", tmp_path / "model.ppe", "--json").stdout)["steps"]]
    assert operations == ["conv + relu"]
    module64 = Branches(groups, stride).double().eval()
    module64.load_state_dict(module.state_dict())
    check_numbers(polyphase, tmp_path / "model.ppe", session, module64, family.inputs, tmp_path, lambda text: record_property("error", text))


class InverseStft(nn.Module):
    """torch.istft; the exporters write a transform, a scatter that adds, and a quotient."""

    def __init__(self, points: int, hop: int):
        super().__init__()
        self.points, self.hop = points, hop
        self.register_buffer("window", torch.hann_window(points))

    def forward(self, magnitude, phase):
        spectra = torch.complex(magnitude * torch.cos(phase), magnitude * torch.sin(phase))
        return torch.istft(spectra, self.points, self.hop, self.points, self.window)


class FoldedFrames(InverseStft):
    """The head of Vocos: irfft, window, fold, and the sum of the windows by another fold."""

    def forward(self, magnitude, phase):
        spectra = torch.complex(magnitude * torch.cos(phase), magnitude * torch.sin(phase))
        frames, length, cut = spectra.shape[2], (spectra.shape[2] - 1) * self.hop + self.points, (self.points - self.hop) // 2
        fold = nn.Fold((1, length), kernel_size=(1, self.points), stride=(1, self.hop))
        y = fold(torch.fft.irfft(spectra, self.points, dim=1) * self.window[None, :, None])[:, 0, 0, cut:-cut]
        windows = self.window.square().expand(1, frames, -1).transpose(1, 2)
        return y / fold(windows).squeeze()[cut:-cut]


class Eager:
    """PyTorch in FP32 where a session of ONNX Runtime would stand: that refuses the 32-bit places which torch.istft is written with."""

    def __init__(self, module: nn.Module):
        self.module = module

    def run(self, _, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
        with torch.no_grad():
            return [self.module(*(torch.from_numpy(array) for array in arrays.values())).numpy()]


def test_inverse_stft(spectra, polyphase, tmp_path, record_property):
    """The newer exporter alone: the older one knows no complex numbers."""
    form, points, hop, dynamic = spectra
    torch.manual_seed(6)

    def inputs(batch, frames):
        return {name: torch.rand(batch, points // 2 + 1, frames) * scale for name, scale in (("magnitude", 1), ("phase", 6))}

    axes = {name: {0: "n", 2: "frames"} for name in ("magnitude", "phase")}
    family = Family(form(points, hop).eval(), inputs(2, 37), axes, inputs(3, 90))
    model = export_onnx(family, tmp_path / "model.onnx", "dynamo", dynamic, opset=20)
    polyphase("compile", model, "-o", tmp_path / "model.ppe")
    steps = json.loads(polyphase("inspect", tmp_path / "model.ppe", "--json").stdout)["steps"]
    operations = [step["operation"] for step in steps]
    assert any("conv_transpose" in each for each in operations) and "dft" not in operations, operations
    assert "scatter_nd" not in operations
    assert not [step["node"] for step in steps if step["reference"]]
    module64 = form(points, hop).double()
    for each in (family.inputs, family.other_inputs) if dynamic else (family.inputs,):
        check_numbers(polyphase, tmp_path / "model.ppe", Eager(family.module), module64, each, tmp_path, lambda text: record_property("error", text))
