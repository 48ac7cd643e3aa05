"""polyphase.legalise and check_module: modules that other engines take, and the fixture that says so."""
from __future__ import annotations

import itertools
import random

import pytest
import torch
from torch import nn

import polyphase

pytest_plugins = ["polyphase.testing"]
LAYERS = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
TARGETS = ("torch_tensorrt", "tensorrt", "onnxruntime", "openvino", "tvm")


def whole_numbers(module: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randint(-3, 4, parameter.shape))
    return module


def drawn_layer(rng: random.Random) -> tuple[nn.Module, torch.Tensor]:
    axes = rng.choice((1, 2, 3))
    stride, dilation = [[rng.randint(1, high) for _ in range(axes)] for high in (4, 3)]
    kernel = [rng.randint(1, 4) for _ in range(axes)]
    padding = [rng.randint(0, d * (k - 1) + 1) for k, d in zip(kernel, dilation)]
    extra = [rng.randrange(max(s, d)) for s, d in zip(stride, dilation)]
    groups = rng.choice((1, 1, 2))
    layer = LAYERS[axes](4, 6, kernel, stride, padding, extra, groups, rng.random() < 0.7, dilation)
    return whole_numbers(layer), torch.randint(-3, 4, (2, 4, *[6 + 2 * p // s for p, s in zip(padding, stride)])).float()


@pytest.mark.parametrize("target", TARGETS)
def test_layers_are_the_same_and_taken(target, full, slice_seed):
    rng = random.Random(slice_seed)
    torch.manual_seed(slice_seed)
    refused = 0
    for _ in range(2_000 if full else 24):
        layer, x = drawn_layer(rng)
        before = polyphase.check_module(layer, (x,), targets=[target])
        legal = polyphase.legalise(layer, (x,), target=target)
        assert torch.equal(legal(x), layer(x)), layer
        assert polyphase.check_module(legal, (x,), targets=[target]) == [], layer
        assert bool(before) == (type(legal) is not type(layer)), layer
        refused += bool(before)
    assert refused > (400 if full else 4)


class Skip(nn.Module):
    """As large as the skip connection: odd and even sizes by output_size."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 4, 3, 2, 1)
        self.up = nn.ConvTranspose2d(4, 3, 3, 2, 1)

    def forward(self, x):
        return self.up(self.down(x), output_size=x.shape[2:]) + x


@pytest.mark.parametrize("target", ["torch_tensorrt", "tensorrt"])
def test_output_size_of_another_tensor(target):
    net = whole_numbers(Skip())
    example = (torch.randint(-3, 4, (1, 3, 8, 9)).float(),)
    legal = polyphase.legalise(net, example, target=target)
    for height, width in itertools.product((8, 9), (8, 9)):
        x = torch.randint(-3, 4, (1, 3, height, width)).float()
        assert torch.equal(legal(x), net(x))
    shapes = {"x": {2: torch.export.Dim("h", min=4, max=99), 3: torch.export.Dim("w", min=4, max=99)}}
    program = torch.export.export(legal, example, dynamic_shapes=shapes, prefer_deferred_runtime_asserts_over_guards=True).module()
    x = torch.randint(-3, 4, (1, 3, 13, 20)).float()
    assert torch.equal(program(x), net(x))
    with pytest.raises(ValueError, match="requested an output size of"):
        legal.up(torch.zeros(1, 4, 4, 4), output_size=(99, 7))


class Called(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2, 2, 3))

    def forward(self, x):
        return nn.functional.conv_transpose1d(x, self.w, dilation=3, output_padding=2)


def test_a_call_that_is_no_layer_is_found_with_its_line():
    x = torch.zeros(1, 2, 5)
    found = polyphase.check_module(Called(), (x,), targets=["onnxruntime", "torch_tensorrt"])
    assert [(finding["target"], finding["rule"]) for finding in found] == [("onnxruntime", "output-padding"), ("torch_tensorrt", "output-padding")]
    assert "conv_transpose1d(x, self.w, dilation=3, output_padding=2)" in found[0]["where"]


def test_the_rest_of_the_module_stays():
    net = nn.Sequential(nn.Conv1d(2, 2, 3), nn.ConvTranspose1d(2, 2, 3, dilation=3, output_padding=2), nn.ConvTranspose1d(2, 2, 3)).eval()
    legal = polyphase.legalise(net, (torch.zeros(1, 2, 9),), target="onnxruntime")
    assert [type(layer).__name__ for layer in legal] == ["Conv1d", "LegalConvTranspose", "ConvTranspose1d"] and not legal[1].training
    assert legal.state_dict().keys() == net.state_dict().keys() and type(net[1]) is nn.ConvTranspose1d
    legal.load_state_dict(net.state_dict())


def test_wrong_arguments():
    with pytest.raises(polyphase.ArgumentError, match="there is no target 'tflite'"):
        polyphase.legalise(nn.ConvTranspose1d(1, 1, 1), target="tflite")
    with pytest.raises(polyphase.ArgumentError, match="net is a str"):
        polyphase.legalise("model.onnx", target="tvm")
    with pytest.raises(polyphase.ArgumentError, match="target is a list"):
        polyphase.legalise(nn.ConvTranspose1d(1, 1, 1), target=["tvm"])


@pytest.mark.parametrize("targets, said", [("tvm", "targets is a string"), (5, "targets is a int"), ([5], "a target is a int"), ([], "targets is empty"), (["tflite"], "there is no target 'tflite'")])
def test_wrong_targets(targets, said):
    for check in (polyphase.check, polyphase.check_module):
        with pytest.raises(polyphase.ArgumentError, match=said):
            check(nn.ConvTranspose1d(1, 1, 1), (torch.zeros(1, 1, 2),), targets=targets)


@pytest.mark.parametrize("example", [None, "x", 5, {"x": 1}])
def test_wrong_examples(example):
    for check in (polyphase.check, polyphase.check_module):
        with pytest.raises(polyphase.ArgumentError, match=f"the example is a {type(example).__name__}. Give a tuple of the arguments"):
            check(nn.ConvTranspose1d(1, 1, 1), example, targets=["tvm"])


def test_check_is_for_modules_and_files(tmp_path):
    from rule_cases import grouped_output_shape

    net, x = nn.ConvTranspose2d(2, 2, 3, 2, output_padding=1), torch.zeros(1, 2, 5, 5)
    found = polyphase.check(net, (x,), targets=["torch_tensorrt", "onnxruntime"])
    assert [(finding["target"], finding["rule"]) for finding in found] == [("torch_tensorrt", "output-padding")]
    assert found == polyphase.check_module(net, x, targets=("torch_tensorrt", "onnxruntime"))
    path = tmp_path / "model.onnx"
    path.write_bytes(grouped_output_shape().model.SerializeToString())
    found = polyphase.check(path, targets=["openvino", "onnxruntime"])
    assert found == [{"target": "openvino", **finding} for finding in polyphase.check_for(path, "openvino")] and found
    assert polyphase.check(path)["ok"]
    for model, settings, said in ((net, {}, "the model is a ConvTranspose2d, and no targets are given"), (path, {"example": (x,)}, "example arguments are given with a file"),
                                  (path, {"example": (x,), "targets": ["tvm"]}, "example arguments are given with a file"), (net, {"targets": ["tvm"]}, "the example is a NoneType"), (b"model", {"example": (x,), "targets": ["tvm"]}, "net is a bytes")):
        with pytest.raises(polyphase.ArgumentError, match=said):
            polyphase.check(model, **settings)


def test_the_fixture(accepted_by):
    accepted_by(nn.ConvTranspose1d(2, 2, 3, 2), (torch.zeros(1, 2, 5),), *TARGETS)
    with pytest.raises(AssertionError, match="onnxruntime: output_padding 2 is not below the stride 1"):
        accepted_by(Called(), (torch.zeros(1, 2, 5),), "onnxruntime")


def test_the_guides_programs_run(tmp_path, monkeypatch):
    """Those that need nothing but what they say; the one of the file runs on a model of that name."""
    from conftest import ROOT
    from rule_cases import grouped_output_shape

    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.onnx").write_bytes(grouped_output_shape().model.SerializeToString())
    programs = [text.split("```")[0] for text in (ROOT / "docs/guides/export.md").read_text().split("```python\n")[1:]]
    ran = 0
    for program in programs:
        if "MyNetwork" not in program:
            exec(program, {})  # noqa: S102: our own words
            ran += 1
    assert ran == 3 and (tmp_path / "out.onnx").exists()
