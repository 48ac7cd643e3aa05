"""polyphase extract: a part of a model opens elsewhere, computes the same, and is closed or refused."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

import test_cli_layers


@pytest.fixture(scope="module")
def unet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("extract")
    model = test_cli_layers.network(folder / "unet.onnx")
    x = np.random.default_rng(1).standard_normal((2, 3, 12, 16), np.float32)
    np.savez(folder / "in.npz", x=x)
    return model, folder / "in.npz", test_cli_layers.golden(model, {"x": x}, folder / "golden.npz")


@pytest.mark.parametrize("start, end", [(["p"], ["up"]), (["p", "r1"], ["y", "sum"]), (["x"], ["b1"]), (["c2"], ["silu"])])
def test_a_part_opens_and_computes_the_same(polyphase, unet, tmp_path, start, end):
    model, inputs, tensors = unet
    borders = [word for name in start for word in ("--from", name)] + [word for name in end for word in ("--to", name)]
    polyphase("extract", model, *borders, "-o", tmp_path / "part.onnx", "--with-data", "--inputs", inputs)
    part = onnx.load(tmp_path / "part.onnx")
    onnx.checker.check_model(part, full_check=True)
    assert [v.name for v in part.graph.input] == start and [v.name for v in part.graph.output] == end
    assert len(part.graph.initializer) < len(onnx.load(model).graph.initializer)
    with np.load(tmp_path / "part.inputs.npz") as given, np.load(tmp_path / "part.expected.npz") as expected:
        session = onnxruntime.InferenceSession(tmp_path / "part.onnx", providers=["CPUExecutionProvider"])
        for name, found in zip(end, session.run(end, {name: given[name] for name in start})):
            np.testing.assert_allclose(found, expected[name], rtol=1e-3, atol=1e-5)
            np.testing.assert_allclose(tensors[name], expected[name], rtol=1e-3, atol=1e-5)
    polyphase("compare", tmp_path / "part.onnx", "--inputs", tmp_path / "part.inputs.npz", "--expect", tmp_path / "part.expected.npz")


@pytest.mark.parametrize("start, end, said", [
    (["p"], ["y"], "the part is not closed: 'x' is an input of the model"),
    (["nowhere"], ["y"], "no tensor 'nowhere'"),
    (["x"], ["nothing"], "no tensor 'nothing'"),
    (["x", "p"], ["silu"], "nothing between needs the tensor 'x'"),
])
def test_a_part_that_is_not_closed_is_refused(polyphase, unet, tmp_path, start, end, said):
    borders = [word for name in start for word in ("--from", name)] + [word for name in end for word in ("--to", name)]
    assert said in polyphase("extract", unet[0], *borders, "-o", tmp_path / "p.onnx", expect=1).stderr
    assert list(tmp_path.iterdir()) == []
