"""New weights in a compiled engine: Engine.refit against a fresh compilation, byte for byte."""

from __future__ import annotations

import io
import os
import threading
import warnings

import numpy as np
import onnx
import pytest
import random_models
import torch
from onnx import TensorProto, helper, numpy_helper
from refit_trial import expect_same, try_model
from torch import nn

import networks
import polyphase
from conftest import wants_full


OPERATORS = {schema.name for schema in onnx.defs.get_all_schemas()}


def program_of(module: nn.Module, inputs, dynamic=None) -> bytes:
    out = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(module.eval(), tuple(inputs), dynamic_shapes=dynamic), out)
    return out.getvalue()


def changed(module: nn.Module, seed: int) -> dict[str, torch.Tensor]:
    """Other weights, legal where the module's are."""
    generator = torch.Generator().manual_seed(seed)
    return {name: tensor * (torch.rand(tensor.shape, generator=generator, dtype=tensor.dtype) + 0.5) if tensor.is_floating_point() else tensor
            for name, tensor in module.state_dict().items()}


def try_module(module: nn.Module, inputs, dynamic=None) -> polyphase.Engine:
    """Exports, compiles, refits to other weights and holds it against the export of the module with those."""
    engine = polyphase.compile(program_of(module, inputs, dynamic), refittable=True)
    weights = changed(module, 7)
    engine.refit(weights)
    module.load_state_dict(weights)
    expect_same(engine.to_bytes(), polyphase.compile(program_of(module, inputs, dynamic), refittable=True).to_bytes())
    with torch.no_grad():
        want = module(*inputs)
    found = engine(*inputs)
    assert torch.allclose(found, want, rtol=2e-4, atol=2e-4 * float(want.abs().max()) + 1e-6)
    return engine


class Normed(nn.Module):
    """Both spellings of weight_norm, in both directions, with a batch norm behind each."""

    def __init__(self):
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.down = nn.utils.weight_norm(nn.Conv1d(3, 8, 5, 2, 2))
            self.up = nn.utils.weight_norm(nn.ConvTranspose1d(8, 4, 4, 2, 1), dim=1)
        self.one = nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 4, 3, padding=1))
        self.two = nn.utils.parametrizations.weight_norm(nn.ConvTranspose1d(4, 2, 4, 2, 1))
        self.norms = nn.ModuleList([nn.BatchNorm1d(channels) for channels in (8, 4, 4, 2)])

    def forward(self, x):
        for layer, norm in zip((self.down, self.up, self.one, self.two), self.norms):
            x = torch.nn.functional.leaky_relu(norm(layer(x)), 0.1)
        return x


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(4, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 4, 3, padding=1)
        self.second.weight = self.first.weight
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.register_buffer("table", torch.linspace(0, 1, 4).reshape(1, 4, 1, 1), persistent=False)

    def forward(self, x):
        return self.second(torch.relu(self.first(x))) * self.scale + self.table


def test_weight_norm_of_both_spellings_and_batch_norms():
    torch.manual_seed(1)
    engine = try_module(Normed().eval(), (torch.randn(2, 3, 32),))
    names = {name for weight in engine.info()["weights"] for name in weight["names"]}
    assert {"down.weight_g", "up.weight_v", "one.parametrizations.weight.original0", "norms.0.running_var"} <= names


def test_open_sizes():
    torch.manual_seed(2)
    auto = torch.export.Dim.AUTO
    module = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.PReLU(), nn.ConvTranspose2d(16, 4, 4, 2, 1))
    try_module(networks.trained_like(module, 3), (torch.randn(1, 3, 16, 24),), ({2: auto, 3: auto},))


def test_weights_whose_taps_were_summed():
    torch.manual_seed(4)
    module = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Upsample(scale_factor=(1, 3)), nn.Conv2d(8, 4, 1),
                           nn.Upsample(scale_factor=3, mode="nearest-exact"), nn.Conv2d(4, 2, (5, 2), padding=(2, 0), groups=2))
    engine = try_module(networks.trained_like(module, 4), (torch.randn(1, 3, 9, 11),))
    assert sum("conv_transpose" in step.get("operation", "") for step in engine.info()["steps"]) == 2


def test_tied_weights_are_one():
    torch.manual_seed(3)
    module = Tied().eval()
    x = (torch.randn(1, 4, 8, 8),)
    engine = polyphase.compile(program_of(module, x), refittable=True)
    new = torch.randn(4, 4, 3, 3)
    assert engine.refit({"first.weight": new})["exchanged"] == ["first.weight"]
    with torch.no_grad():
        module.first.weight.copy_(new)
    assert module.second.weight is module.first.weight
    expect_same(engine.to_bytes(), polyphase.compile(program_of(module, x), refittable=True).to_bytes())
    engine.refit(module)  # its parameters and buffers, by both names
    with pytest.raises(polyphase.Error, match="are one tensor in the model, but differ here") as raised:
        engine.refit({"first.weight": new, "second.weight": new + 1})
    assert raised.value.code == "invalid_argument"
    assert torch.allclose(engine(*x), module(*x), atol=1e-5)


@pytest.mark.parametrize("name", sorted(networks.FAMILIES))
def test_families(name):
    family = networks.FAMILIES[name]()
    try_module(family.module, tuple(family.inputs.values()))


@pytest.mark.parametrize("chunk", range(8))
def test_random_models(chunk, request):
    count = 400 if wants_full(request.config) else 8
    exchanged = 0
    for seed in range(chunk * count, (chunk + 1) * count):
        model = random_models.Maker(seed, OPERATORS).model()
        try:
            exchanged += try_model(model, seed)
        except polyphase.Error as error:
            if error.code not in ("unsupported", "invalid_model"):
                raise AssertionError(f"seed {seed}: {error}") from error
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert exchanged > 0


def small(values: np.ndarray | None = None) -> onnx.ModelProto:
    weight = np.arange(16, dtype=np.float32).reshape(4, 1, 2, 2) if values is None else values
    return helper.make_model(
        helper.make_graph(
            [helper.make_node("ConvTranspose", ["x", "w", "b"], ["c"], group=4, strides=[2, 2]), helper.make_node("Mul", ["c", "s"], ["m"]),
             helper.make_node("Reshape", ["m", "shape"], ["y"])],
            "small", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 3, 3])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.ones(4, np.float32), "b"),
             numpy_helper.from_array(np.ones((1, 4, 1, 1), np.float32), "s"),
             numpy_helper.from_array(np.array([1, 4, 36], np.int64), "shape"), numpy_helper.from_array(np.zeros(3, np.float32), "nobody's")]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("target", ["native", "portable", "scalar"])
def test_every_target(target):
    assert try_model(small(), 4, target=target) == 4


def test_what_it_says():
    engine = polyphase.compile(small(), refittable=True)
    x = np.ones((1, 4, 3, 3), np.float32)
    before = engine(x)
    session = engine.session()
    said = engine.refit({"w": np.zeros((4, 1, 2, 2), np.float32), "nobody's": np.ones(3, np.float32), "shape": np.array([1, 4, 36])})
    assert said == {"exchanged": ["w"], "left_out": ["b", "s"], "without_effect": ["nobody's", "shape"], "unknown": []}
    assert (engine(x) == 1).all()
    assert (session.run([x])["y"] == before).all()  # runs of before keep theirs
    assert engine.refit({"z": x, "b": np.full(4, 2, np.float32)}, strict=False)["unknown"] == ["z"]
    assert (engine(x) == 2).all()
    strided = np.ones((2, 2, 1, 4), np.float32).transpose(3, 2, 1, 0)[:, :, ::-1]
    engine.refit({"w": torch.nn.Parameter(torch.ones(4, 1, 2, 2)), "s": np.full((1, 4, 1, 1), 3, np.float32)})
    engine.refit({"w": strided})
    assert (engine(x) == 9).all()


@pytest.mark.parametrize(("weights", "code", "words"), [
    ({"w": np.zeros((4, 1, 2, 3), np.float32)}, "shape_mismatch", r"weight 'w' is f32\[4, 1, 2, 3\]; the engine was compiled with f32\[4, 1, 2, 2\]"),
    ({"w": np.zeros((4, 1, 2, 2))}, "invalid_argument", "weight 'w' is f64.*compiled with f32.*Convert it"),
    ({"v": np.zeros(1, np.float32)}, "invalid_argument", "has no weight 'v'.*The weights are 'w', 'b', 's', 'shape'"),
    ({"shape": np.array([1, 36, 4])}, "invalid_argument", "weight 'shape' cannot change without a compilation: integers of at most 1024 elements may decide sizes"),
    ({1: np.zeros(1)}, "invalid_argument", "no name"),
    ([1], "invalid_argument", "the weights are a list"),
    ({"w": None}, "invalid_argument", "weight 'w'"),
])
def test_refusals_leave_all_as_it_was(weights, code, words):
    engine = polyphase.compile(small(), refittable=True)
    before = engine.to_bytes()
    with pytest.raises(polyphase.Error, match=words) as raised:
        engine.refit(weights)
    assert raised.value.code == code
    assert engine.to_bytes() == before


def test_an_engine_that_cannot():
    engine = polyphase.compile(small())
    with pytest.raises(polyphase.Error, match="cannot take other weights.*refittable"):
        engine.refit({"w": np.zeros((4, 1, 2, 2), np.float32)})
    assert not engine.info()["refittable"]


def test_the_program_with_the_model_deleted(polyphase, tmp_path):
    onnx.save(small(), tmp_path / "m.onnx")
    polyphase("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.ppe", "--refittable")
    other = np.random.default_rng(1).standard_normal((4, 1, 2, 2)).astype(np.float32)
    onnx.save(small(other), tmp_path / "n.onnx")
    polyphase("compile", tmp_path / "n.onnx", "-o", tmp_path / "want.ppe", "--refittable")
    os.remove(tmp_path / "m.onnx")
    np.savez(tmp_path / "w.npz", w=other)
    done = polyphase("refit", tmp_path / "m.ppe", tmp_path / "w.npz", "-o", tmp_path / "new.ppe")
    assert "1 weights exchanged" in done.stderr
    assert (tmp_path / "new.ppe").read_bytes() == (tmp_path / "want.ppe").read_bytes()
    np.savez(tmp_path / "w.npz", w=other[:1])
    done = polyphase("refit", tmp_path / "m.ppe", tmp_path / "w.npz", "-o", tmp_path / "bad.ppe", expect=1)
    assert "weight 'w' is f32[1, 1, 2, 2]" in done.stderr
    assert not (tmp_path / "bad.ppe").exists()


def test_calls_of_other_threads_see_one_or_the_other():
    engine = polyphase.compile(small(), refittable=True)
    x = np.ones((1, 4, 3, 3), np.float32)
    engine.refit({"w": np.zeros((4, 1, 2, 2), np.float32)})
    wrong = []

    def run():
        for _ in range(60):
            found = engine(x)
            if not ((found == found.flat[0]).all() and found.flat[0] in (0, 1, 2, 3)):
                wrong.append(found)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(60):
        engine.refit({"b": np.full(4, i % 4, np.float32)})
    for thread in threads:
        thread.join()
    assert not wrong


def test_memory_is_handed_on_only_where_nobody_reads_it():
    """Refits take the memory of the engine before the last; sessions hold theirs."""
    torch.manual_seed(3)
    net = networks.DcganGenerator(width=16).eval()
    z = torch.randn(1, 100, 1, 1)
    engine = polyphase.compile(net, (z,), refittable=True)
    kept = []
    for i in range(6):
        weights = changed(net, i)
        engine.refit(weights)
        with torch.no_grad():
            want = torch.func.functional_call(net, weights, (z,))
        if i in (1, 2):
            kept.append((engine.session(), want))
        assert torch.allclose(engine(z), want, rtol=2e-4, atol=2e-4)
        for session, expected in kept:
            (found,) = session.run([z]).values()
            assert torch.allclose(found, expected, rtol=2e-4, atol=2e-4)
