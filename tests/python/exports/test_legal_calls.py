"""polyphase.legalise where transposed convolutions are called as functions: random calls against PyTorch, torch.export and ONNX Runtime."""
from __future__ import annotations

import copy
import io
import itertools
import pickle
import random

import numpy
import onnx
import onnxruntime
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import polyphase

CALLS = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
OVERLOADS = {1: torch.ops.aten.conv_transpose1d.default, 2: torch.ops.aten.conv_transpose2d.input, 3: torch.ops.aten.conv_transpose3d.input}
NAMES = ("bias", "stride", "padding", "output_padding", "groups", "dilation")
TARGETS = ("torch_tensorrt", "tensorrt", "onnxruntime", "openvino", "tvm")


class Drawn(nn.Module):
    """One call: some arguments by position, the others by name; the weight a parameter or computed."""

    def __init__(self, rng: random.Random):
        super().__init__()
        self.axes = axes = rng.choice((1, 2, 3))
        stride, dilation = [[rng.randint(1, high) for _ in range(axes)] for high in (4, 3)]
        kernel = [rng.randint(1, 4) for _ in range(axes)]
        if rng.random() < 0.3:
            stride, dilation, kernel = [stride[0]] * axes, [dilation[0]] * axes, [kernel[0]] * axes
        padding = [rng.randint(0, d * (k - 1) + 1) for k, d in zip(kernel, dilation)]
        extra = [rng.randrange(max(s, d)) for s, d in zip(stride, dilation)]
        groups = rng.choice((1, 1, 2))
        self.weight = nn.Parameter(torch.randint(-3, 4, (4, 6 // groups, *kernel)).float())
        self.bias = nn.Parameter(torch.randint(-3, 4, (6,)).float()) if rng.random() < 0.7 else None
        self.computed, self.unbatched = rng.random() < 0.3, rng.random() < 0.1
        self.call = rng.choice((CALLS[axes], CALLS[axes], OVERLOADS[axes]))
        self.given = {"stride": stride, "padding": padding, "output_padding": extra, "groups": groups, "dilation": dilation}
        if self.call is CALLS[axes]:
            self.given = {name: self.said(value, rng) for name, value in self.given.items() if value != {"groups": 1}.get(name, [1 - ("padding" in name)] * axes) or rng.random() < 0.3}
        self.by_position = rng.randint(0, len(NAMES))
        self.sizes = [4, *[5 + 2 * p // s for p, s in zip(padding, stride)]]

    @staticmethod
    def said(value, rng: random.Random):
        if isinstance(value, int):
            return value
        return value[0] if len(set(value)) == 1 and rng.random() < 0.6 else rng.choice((list, tuple))(value)

    def example(self) -> tuple[torch.Tensor]:
        return (torch.randint(-3, 4, self.sizes if self.unbatched else (2, *self.sizes)).float(),)

    def forward(self, x):
        weight = self.weight * 2 - 1 if self.computed else self.weight
        given = {"bias": self.bias, **self.given}
        front = []
        for name in NAMES[: self.by_position]:
            if name not in given:
                break
            front.append(given.pop(name))
        return self.call(x, weight, *front, **given)


def in_onnxruntime(module: nn.Module, example: tuple[torch.Tensor, ...], **options) -> torch.Tensor:
    file = io.BytesIO()
    torch.onnx.export(module, example, file, verbose=False, **options)
    model = onnx.load_from_string(file.getvalue())
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return torch.from_numpy(numpy.array(session.run(None, dict(zip(names, (x.numpy() for x in example))))[0]))


@pytest.mark.parametrize("target", TARGETS)
def test_calls_are_the_same_and_taken(target, full, slice_seed):
    rng = random.Random(slice_seed)
    torch.manual_seed(slice_seed)
    rewritten = 0
    for _ in range(1_000 if full else 24):
        net = Drawn(rng)
        example = net.example()
        before = polyphase.check_module(net, example, targets=[target])
        legal = polyphase.legalise(net, example, target=target)
        assert isinstance(legal, Drawn) and torch.equal(legal(*example), net(*example)), (net.call, net.given)
        assert polyphase.check_module(legal, example, targets=[target]) == [], (net.call, net.given)
        assert bool(before) == (type(legal) is not Drawn) and legal.state_dict().keys() == net.state_dict().keys()
        legal.load_state_dict(net.state_dict())
        rewritten += bool(before)
    assert rewritten > (150 if full else 3)


@pytest.mark.parametrize("strict", [False, True])
def test_torch_export_sees_what_it_became(strict, full, slice_seed):
    rng = random.Random(slice_seed + 1)
    for _ in range(100 if full else 6):
        net = Drawn(rng)
        example = net.example()
        program = torch.export.export(polyphase.legalise(net, example, target="tensorrt"), example, strict=strict)
        assert torch.equal(program.module()(*example), net(*example)), (net.call, net.given)


@pytest.mark.parametrize("dynamo", [False, True])
def test_onnx_runtime_takes_them(dynamo, full, slice_seed):
    rng = random.Random(slice_seed + 2)
    ran = 0
    while ran < (60 if full else 4):
        net = Drawn(rng)
        example = net.example()
        if net.unbatched or net.call is not CALLS[net.axes] or not polyphase.check_module(net, example, targets=["onnxruntime"]):
            continue
        legal = polyphase.legalise(net, example, target="onnxruntime")
        assert torch.equal(in_onnxruntime(legal, example, dynamo=dynamo), net(*example)), (net.call, net.given)
        ran += 1


class Block(nn.Module):
    """Two calls of the parameters of a layer and of one that is computed; the layer beside them stays."""

    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(2, 3, 3, 2, 1)
        self.scale = nn.Linear(3, 4)

    def forward(self, x, gain):
        y = torch.conv_transpose2d(x, self.up.weight, self.up.bias, 2, padding=1, output_padding=(1, 0))
        kernel = self.scale(gain).view(3, 1, 2, 2)
        return F.conv_transpose2d(input=y, weight=kernel, stride=(3, 3), output_padding=2, groups=3) + self.up(x).mean()


def whole_block() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    net = nn.ModuleDict({"block": Block(), "head": nn.Conv2d(3, 1, 1)})
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randint(-2, 3, parameter.shape))
    return net["block"], (torch.randint(-2, 3, (1, 2, 4, 5)).float(), torch.randint(-2, 3, (3, 3)).float())


@pytest.mark.parametrize("target", ["torch_tensorrt", "tensorrt"])
def test_a_module_stays_a_module(target):
    net, example = whole_block()
    legal = polyphase.legalise(net, example, target=target)
    assert isinstance(legal, Block) and [name for name, _ in legal.named_modules()] == ["", "up", "scale"]
    wanted = net(*example)
    for same in (legal, copy.deepcopy(legal), pickle.loads(pickle.dumps(legal)), polyphase.legalise(legal, example, target=target)):
        assert torch.equal(same(*example), wanted) and polyphase.check_module(same, example, targets=[target]) == []
        assert same.state_dict().keys() == net.state_dict().keys()
    assert torch.equal(torch.compile(legal, backend="aot_eager", fullgraph=True)(*example), wanted)
    assert torch.equal(torch.jit.trace(legal, example)(*example), wanted)
    assert torch.equal(torch.fx.symbolic_trace(legal)(*example), wanted)
    assert torch.equal(polyphase.compile(legal, example)(*example), wanted)
    for module in (net, legal):
        module(*example).sum().backward()
    for one, other in zip(net.parameters(), legal.parameters()):
        assert torch.equal(one.grad, other.grad)


def test_one_program_for_open_sizes():
    """The output_padding follows from the sizes: odd and even ones in one program."""

    net = Skip()
    x = torch.randint(-3, 4, (1, 3, 10)).float()
    legal = polyphase.legalise(net, (x,), target="tensorrt")
    program = torch.export.export(legal, (x,), dynamic_shapes={"x": {2: torch.export.Dim("n", min=4, max=99)}}, prefer_deferred_runtime_asserts_over_guards=True)
    assert not [node for node in program.graph.nodes if "conv_transpose1d" in str(node.target) and any(node.args[5:6] and node.args[5])]
    for size in range(4, 14):
        x = torch.randint(-3, 4, (1, 3, size)).float()
        assert torch.equal(legal(x), net(x)) and torch.equal(program.module()(x), net(x))


class Skip(nn.Module):
    """The output_padding follows from the size, and is 0 for odd ones."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randint(-3, 4, (3, 3, 3)).float())

    def forward(self, x):
        return F.conv_transpose1d(x[:, :, ::2], self.weight, stride=2, padding=1, output_padding=(x.shape[2] - 1) % 2) + x


@pytest.mark.parametrize("size", [9, 10])
def test_a_computed_output_padding_is_seen_though_the_example_has_none(size):
    net = nn.Sequential(Skip(), nn.Sequential(nn.Conv1d(3, 3, 1), Skip()))
    x = torch.randint(-3, 4, (1, 3, size)).float()
    legal = polyphase.legalise(net, (x,), target="tensorrt")
    assert [type(module).__name__ for module in legal.modules()] == ["Sequential", "LegalSkip", "Sequential", "Conv1d", "LegalSkip"]
    program = torch.export.export(legal, (x,), dynamic_shapes=({2: torch.export.Dim("n", min=4, max=99)},), prefer_deferred_runtime_asserts_over_guards=True)
    calls = [node for node in program.graph.nodes if "conv_transpose1d" in str(node.target)]
    assert len(calls) == 2 and not any(any(node.args[5:6] and node.args[5]) for node in calls)
    for size in range(4, 12):
        x = torch.randint(-3, 4, (1, 3, size)).float()
        assert torch.equal(program.module()(x), net(x)) and torch.equal(legal(x), net(x))


class Checkpointed(nn.Module):
    """Its call is made again by the backward pass, outside of forward."""

    def __init__(self, reentrant: bool, by_lambda: bool):
        super().__init__()
        self.weight = nn.Parameter(torch.randint(-2, 3, (3, 3, 3)).float())
        self.reentrant, self.by_lambda = reentrant, by_lambda

    def block(self, x):
        return F.conv_transpose1d(x * x, self.weight, stride=2, output_padding=1) * 2

    def forward(self, x):
        call = (lambda y: F.conv_transpose1d(y * y, self.weight, stride=2, output_padding=1) * 2) if self.by_lambda else self.block
        return checkpoint(call, x, use_reentrant=self.reentrant) * 3


class Around(nn.Module):
    def __init__(self, inner: Checkpointed):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=self.inner.reentrant)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("by_lambda", [False, True])
@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpoints_inside(reentrant, by_lambda, nested):
    net = Checkpointed(reentrant, by_lambda)
    net = Around(net) if nested else net
    x = torch.randint(-2, 3, (1, 3, 6)).float().requires_grad_()
    assert polyphase.check_module(net, (x,), targets=["tensorrt"]), "also where the program has graphs in graphs"
    legal = polyphase.legalise(net, (x,), target="tensorrt")
    found = []
    for module in (net, legal, torch.compile(legal, backend="aot_eager")):
        x.grad = None
        y = module(x)
        y.sum().backward()
        found.append((y, x.grad))
    assert all(torch.equal(a, b) for pair in found[1:] for a, b in zip(pair, found[0]))
    for one, other in zip(net.parameters(), legal.parameters()):
        assert torch.equal(one.grad * 2, other.grad)  # legal ran twice
    assert polyphase.check_module(legal, (x,), targets=["tensorrt"]) == []


@pytest.mark.parametrize("target", ["torch_tensorrt", "tensorrt"])
@pytest.mark.parametrize("way", ["weight_norm", "parametrized", "spectral", "subclass"])
def test_layers_whose_weights_are_computed_keep_their_parameters(way, target):
    class Scaled(nn.ConvTranspose1d):
        def forward(self, x, output_size=None):
            return super().forward(2 * x, output_size)

    layer = (Scaled if way == "subclass" else nn.ConvTranspose1d)(3, 4, 5, 2, 1, output_padding=1, dilation=2)
    layer = {"weight_norm": nn.utils.weight_norm, "parametrized": nn.utils.parametrizations.weight_norm, "spectral": nn.utils.spectral_norm}.get(way, lambda same: same)(layer)
    net, x = nn.Sequential(layer, nn.Tanh()).eval(), torch.randn(1, 3, 6)
    legal = polyphase.legalise(net, (x,), target=target)
    assert legal.state_dict().keys() == net.state_dict().keys() and polyphase.check_module(legal, (x,), targets=[target]) == []
    torch.testing.assert_close(legal(x), net(x))
    with torch.no_grad():
        for one, other in zip(net.parameters(), legal.parameters()):
            one.mul_(1.5)
            other.mul_(1.5)
    torch.testing.assert_close(legal(x), net(x))


def test_a_module_with_two_names_and_one_that_has_seen_data():
    layer = nn.ConvTranspose1d(2, 2, 3, 2, output_padding=1)
    net = nn.ModuleDict({"a": layer, "b": layer})
    legal = polyphase.legalise(net, target="tensorrt")
    assert legal["a"] is legal["b"] and type(legal["a"]).__name__ == "LegalConvTranspose"
    norm = nn.Sequential(nn.BatchNorm1d(2), layer)
    polyphase.legalise(norm, (torch.randn(3, 2, 5),), target="tensorrt")
    assert int(norm[0].num_batches_tracked) == 0


def test_what_pytorch_refuses_it_still_refuses():
    class Free(nn.Module):
        def forward(self, x, w, **given):
            return F.conv_transpose1d(x, w, **given)

    x, w = torch.zeros(1, 2, 5), torch.zeros(2, 2, 3)

    class Fixed(Free):
        def forward(self, x, w, **given):
            return super().forward(x, w, **{"stride": 2, "output_padding": 1, **given})

    legal = polyphase.legalise(Fixed(), (x, w), target="tensorrt")
    for given in ({"output_padding": 2}, {"stride": 0}, {"padding": -1}, {"stride": (1, 2)}, {"strides": 2}, {"output_padding": -1}, {"groups": 3}, {"bias": torch.zeros(3)}):
        with pytest.raises((RuntimeError, TypeError)) as theirs:
            Fixed()(x, w, **given)
        with pytest.raises(type(theirs.value)):
            legal(x, w, **given)
    for stride, extra in itertools.product((2, 3), (0, 1)):
        assert legal(x, w, stride=stride, output_padding=extra).shape == Fixed()(x, w, stride=stride, output_padding=extra).shape


def test_what_cannot_be_reached_is_refused_with_its_place():
    class Called(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(2, 2, 3))

        def forward(self, x):
            return F.conv_transpose1d(x, self.w, dilation=3, output_padding=2)

    x = torch.zeros(1, 2, 5)
    graph = torch.fx.symbolic_trace(Called())
    own = Called()
    own.forward = lambda x: F.conv_transpose1d(x, own.w, dilation=3, output_padding=2)
    for net in (graph, own):
        with pytest.raises(polyphase.UnsupportedError, match="output_padding 2 is not below the stride 1, in a call that cannot be reached: .*conv_transpose1d"):
            polyphase.legalise(net, (x,), target="onnxruntime")
