"""Recurrences, loops and scans as PyTorch's exporters write them: PyTorch's shapes, and its numbers to FP64."""

from __future__ import annotations

import json

import numpy as np
import onnxruntime
import pytest
import torch

from export import EXPORTERS, export_onnx
from recurrent_networks import RECURRENT, SCRIPTED, TRACED
from test_families import check_numbers


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_network(name, exporter, polyphase, tmp_path, record_property):
    dynamic = exporter == "torchscript"
    family = RECURRENT[name]()
    model = export_onnx(family, tmp_path / "model.onnx", exporter, dynamic)
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    polyphase("compile", model, "-o", tmp_path / "model.ppe")
    steps = json.loads(polyphase("inspect", tmp_path / "model.ppe", "--json").stdout)["steps"]
    slow = [step["node"] for step in steps if step["reference"]]
    assert not slow, f"these steps run reference loops: {slow}"
    module64 = RECURRENT[name]().module.double()
    record = lambda words: record_property("error", words)
    check_numbers(polyphase, tmp_path / "model.ppe", session, module64, family.inputs, tmp_path, record)
    if dynamic:
        check_numbers(polyphase, tmp_path / "model.ppe", session, module64, family.other_inputs, tmp_path, record)


def run_and_compare(polyphase, model, arrays, right, folder):
    ours = polyphase.run_arrays(model, arrays, folder)["out"]
    assert ours.shape == right.shape
    np.testing.assert_allclose(ours, right, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", SCRIPTED)
def test_scripted_loop(name, polyphase, tmp_path):
    make, calls = SCRIPTED[name]
    torch.manual_seed(1)
    module = torch.jit.script(make().eval())
    names = ["x", "n"][: len(calls[0])]
    torch.onnx.export(module, calls[0], str(tmp_path / "model.onnx"), dynamo=False, input_names=names, output_names=["out"],
                      dynamic_axes={"x": {0: "N"}}, opset_version=17)
    polyphase("compile", tmp_path / "model.onnx", "-o", tmp_path / "model.ppe")
    for call in calls:
        with torch.no_grad():
            right = module(*call).numpy()
        run_and_compare(polyphase, tmp_path / "model.ppe", {name: np.asarray(value) for name, value in zip(names, call)}, right, tmp_path)


@pytest.mark.parametrize("name", TRACED)
def test_higher_order_loop(name, polyphase, tmp_path):
    make, x = TRACED[name]
    module = make()
    torch.onnx.export(module, (x,), str(tmp_path / "model.onnx"), dynamo=True, input_names=["x"], output_names=["out"], external_data=False,
                      verbose=False)
    run_and_compare(polyphase, tmp_path / "model.onnx", {"x": x.numpy()}, module(x).numpy(), tmp_path)
