"""precision=: which convolutions and matrix products may multiply in bf16, for which targets, and what the engine says of it.

Compiling for a CPU needs none; what the kernels compute is tested by tests/backends and tests/conformance."""
import numpy as np
import pytest
import torch

import polyphase
from polyphase import ArgumentError


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(3)
    return torch.nn.Sequential(
        torch.nn.Conv2d(16, 64, 3, padding=1), torch.nn.BatchNorm2d(64), torch.nn.ReLU(),
        torch.nn.ConvTranspose2d(64, 48, 3, 2, 1, output_padding=1), torch.nn.ReLU(),
        torch.nn.ConvTranspose2d(48, 48, 4, 2, 1, groups=48)).eval()


def compiled(network, dtype, **options):
    module = network.to(dtype)
    return polyphase.compile(module, (torch.randn(1, 16, 48, 48, dtype=dtype),), **options)


def remark_of(engine):
    return [remark for remark in engine.info()["remarks"] if "multiply in bf16" in remark]


def rows_of(engine):
    return [step["rows"][0] for step in engine.info()["steps"] if step["rows"] and step["rows"][0].startswith("conv")]


def test_an_fp32_model_multiplies_in_bf16_only_when_it_is_told_to(network):
    for target in ("avx512_bf16", "amx"):
        for precision in ("model", "fp32"):
            engine = compiled(network, torch.float32, target=target, precision=precision)
            assert remark_of(engine) == [] and not any("pairs" in row for row in rows_of(engine))
            assert engine.info()["cluster"] == "avx512", "it runs wherever AVX-512 does"
        engine = compiled(network, torch.float32, target=target, precision="auto")
        assert remark_of(engine) == ["2 of 3 convolutions multiply in bf16; precision fp32 keeps them from it."]
        assert rows_of(engine)[0] == "conv_pairs" and rows_of(engine)[1] in ("conv_transpose_pairs", "conv_transpose_winograd_pairs")
        assert engine.info()["cluster"] == target


def test_a_bf16_model_does_so_by_itself(network):
    for target in ("avx512_bf16", "amx"):
        engine = compiled(network, torch.bfloat16, target=target)
        assert remark_of(engine) == ["2 of 3 convolutions multiply in bf16, as the model stores its tensors."]
        first = next(step for step in engine.info()["steps"] if step["rows"] and step["rows"][0] == "conv_pairs")
        assert first["operation"].startswith("cast + conv"), "the image is read in bf16"
        assert not any("winograd" in row for row in rows_of(engine)), "only the model's own numbers are multiplied in bf16"
        assert remark_of(compiled(network, torch.bfloat16, target=target, precision="fp32")) == []


@pytest.mark.parametrize("target", ["scalar", "avx2", "avx512", "portable"])
def test_targets_without_instructions_for_it_keep_fp32(network, target):
    engine = compiled(network, torch.float32, target=target, precision="auto")
    assert remark_of(engine) == [] and not any("pairs" in row for row in rows_of(engine))


def test_auto_keeps_the_result(network):
    """On whatever CPU this runs: within what rounding operands to bf16 costs."""
    module = network.to(torch.float32)
    x = torch.randn(1, 16, 48, 48)
    with torch.no_grad():
        want = module(x).double().numpy()
    engine = polyphase.compile(module, (x,), precision="auto")
    found = engine(x.numpy()).astype(np.float64)
    assert np.linalg.norm(found - want) <= 8e-3 * np.linalg.norm(want)


class Block(torch.nn.Module):
    """Tokens through linear layers, with everything behind a product that can end it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.wide, self.narrow = torch.nn.Linear(96, 384), torch.nn.Linear(384, 96, bias=False)
        self.places = torch.nn.Parameter(torch.randn(1, 500, 96))

    def forward(self, x):
        return self.narrow(torch.nn.functional.gelu(self.wide(x + self.places))) + x


def test_linear_layers_are_one_step_each_in_bf16_where_they_may():
    for target, precision, row in (("amx", "auto", "matmul_pairs"), ("amx", "fp32", "matmul_gemm"), ("avx2", "auto", "matmul_gemm")):
        engine = polyphase.compile(Block().eval(), (torch.randn(1, 500, 96),), target=target, precision=precision)
        products = [step for step in engine.info()["steps"] if step["rows"] and step["rows"][0].startswith("matmul")]
        assert [step["operation"] for step in products] == ["matmul + add + gelu", "matmul + add"]
        assert all(step["rows"][0] == row for step in products)
        said = ["2 of 2 convolutions and matrix products multiply in bf16; precision fp32 keeps them from it."] if row == "matmul_pairs" else []
        assert remark_of(engine) == said


@pytest.mark.parametrize(("precision", "most"), [("auto", 8e-3), ("fp32", 1e-6)])
def test_linear_layers_keep_their_result(precision, most):
    block, x = Block().eval(), torch.randn(3, 500, 96)
    with torch.no_grad():
        want = block.double()(x.double()).numpy()
    found = polyphase.compile(block.float(), (x,), precision=precision)(x.numpy()).astype(np.float64)
    assert np.linalg.norm(found - want) <= most * np.linalg.norm(want)


def test_bad_precisions(network):
    with pytest.raises(ArgumentError, match="there is no precision 'fp16'. Precisions are model, fp32 and auto."):
        compiled(network, torch.float32, precision="fp16")
    with pytest.raises(ArgumentError, match="precision is a int"):
        compiled(network, torch.float32, precision=16)
    with pytest.raises(Exception, match="the option precision is 3. Give 'model', 'fp32' or 'auto'."):
        torch.compile(network.to(torch.float32), backend="polyphase", options={"precision": 3})(torch.randn(1, 16, 8, 8))


def test_torch_compile_takes_it(network):
    module = network.to(torch.float32)
    x = torch.randn(1, 16, 24, 24)
    with torch.no_grad():
        want = module(x)
        found = torch.compile(module, backend="polyphase", options={"precision": "auto", "cache": False})(x)
    assert torch.linalg.norm(found - want) <= 8e-3 * torch.linalg.norm(want)


class Endings(torch.nn.Module):
    """What may follow a convolution: in registers, by rows, in front of the next one, and sums of images."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(32, 48, 3, padding=1)
        self.slopes = torch.nn.PReLU(48)
        self.second = torch.nn.Conv2d(48, 48, 3, padding=1)
        self.third = torch.nn.Conv2d(48, 48, 5, padding=2)
        self.up = torch.nn.ConvTranspose2d(48, 40, 4, 2, 1)
        self.mirrored = torch.nn.Conv2d(40, 32, 3, padding=1, padding_mode="reflect")

    def forward(self, x):
        x = self.slopes(self.first(x))
        x = torch.relu(x + self.second(x))
        x = torch.nn.functional.silu(self.third(x)) + x
        return torch.tanh(self.mirrored(torch.relu(self.up(x))))


@pytest.mark.parametrize("target", ["scalar", "avx2", "avx512"])
def test_automatic_precision_filters_four_outputs_at_once(target):
    torch.manual_seed(4)
    net = Endings().eval()
    x = torch.randn(2, 32, 37, 45)
    engine = polyphase.compile(net, (x,), target=target, precision="auto")
    fours = [row for row in rows_of(engine) if row.endswith("winograd_fours")]
    assert len(fours) >= 3
    assert [r for r in engine.info()["remarks"] if "four outputs" in r] == [
        f"{len(fours)} of 5 convolutions are filtered four outputs at once, with some three times the error of direct sums; precision fp32 keeps them from it."]
    for precision in ("model", "fp32"):
        exact = polyphase.compile(net, (x,), target=target, precision=precision)
        assert not any(row.endswith("fours") for row in rows_of(exact)) and not any("four" in r for r in exact.info()["remarks"])
    own = polyphase.devices()[0]["cluster"]
    if (target == "avx2" and own == "scalar") or (target == "avx512" and not own.startswith(("avx512", "amx"))):
        pytest.skip(f"this CPU has no {target}")
    with torch.no_grad():
        want = net.double()(x.double()).numpy()
    got = engine.session(threads=2)(x).numpy()
    assert np.linalg.norm(got - want) <= 3e-6 * np.linalg.norm(want)


def test_filters_of_four_are_for_open_sizes_and_other_types_too():
    torch.manual_seed(5)
    net = torch.nn.Sequential(torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(64, 64, 3, padding=1)).eval()
    x = torch.randn(1, 64, 40, 56)
    sizes = ({2: torch.export.Dim("h", min=8, max=512), 3: torch.export.Dim("w", min=8, max=512)},)
    engine = polyphase.compile(net, (x,), dynamic_shapes=sizes, target="avx2", precision="auto")
    assert [row for row in rows_of(engine)] == ["conv_winograd_fours"] * 2
    half = polyphase.compile(net.half(), (x.half(),), target="avx2", precision="auto")
    assert [row for row in rows_of(half)] == ["conv_winograd_fours"] * 2
