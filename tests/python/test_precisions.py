"""The families with weights and activations of other floats than FP32: no reference loops, and errors as small as the best of the others'.

FP16 is measured against ONNX Runtime, which also computes it in FP32 on a CPU; BF16, which that does not run, against PyTorch. The truth
is PyTorch in FP64 on the same rounded weights. FP64 networks must show no error but the rounding of their FP32 result.
"""

from __future__ import annotations

import copy
import json
import pathlib
import random
import warnings

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from conftest import wants_full
from networks import FAMILIES
from test_families import rms

KINDS = {"f16": torch.float16, "bf16": torch.bfloat16}


def pytest_generate_tests(metafunc):
    if "name" in metafunc.fixturenames:
        names = list(FAMILIES)
        if not wants_full(metafunc.config):
            names = random.Random(metafunc.config.getoption("--slice-seed")).sample(names, 3)
        metafunc.parametrize("name", names)


class Narrow(nn.Module):
    """A module of that type between FP32 borders, so that arrays of any tool can enter and leave."""

    def __init__(self, inside: nn.Module, dtype: torch.dtype):
        super().__init__()
        self.inside = inside.to(dtype)
        self.dtype = dtype

    def forward(self, x):
        return self.inside(x.to(self.dtype)).float()


def in_fp64(narrow: Narrow, x: torch.Tensor) -> np.ndarray:
    with torch.no_grad():
        return copy.deepcopy(narrow.inside).double()(x.to(narrow.dtype).double()).numpy()


def export_unfolded(module: nn.Module, inputs: dict[str, torch.Tensor], path: pathlib.Path) -> pathlib.Path:
    """With the batch norms as they are: the exporters would fold them into weights that they round again, or into FP32 ones."""
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module, tuple(inputs.values()), str(path), dynamo=False, input_names=list(inputs), output_names=["out"], opset_version=17,
            training=torch.onnx.TrainingMode.PRESERVE,
        )
    return path


def assert_no_reference(polyphase, engine: pathlib.Path):
    steps = json.loads(polyphase("inspect", engine, "--json").stdout)["steps"]
    slow = [step["node"] for step in steps if step["reference"]]
    assert not slow, f"these steps run reference loops: {slow}"


@pytest.mark.parametrize("kind", KINDS)
def test_half(name, kind, polyphase, tmp_path, record_property):
    family = FAMILIES[name]()
    narrow = Narrow(family.module, KINDS[kind]).eval()
    model = export_unfolded(narrow, family.inputs, tmp_path / "model.onnx")
    polyphase("compile", model, "-o", tmp_path / "model.ppe")
    assert_no_reference(polyphase, tmp_path / "model.ppe")
    (x,) = family.inputs.values()
    right = in_fp64(narrow, x)
    arrays = {key: value.numpy() for key, value in family.inputs.items()}
    ours = polyphase.run_arrays(tmp_path / "model.ppe", arrays, tmp_path)["out"]
    if kind == "f16":
        theirs = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"]).run(None, arrays)[0]
    else:
        with torch.no_grad():
            theirs = narrow(x).numpy()
    error, their_error = rms(ours - right), rms(theirs - right)
    record_property("error", f"{error / rms(right):.2e} of the RMS, peer {their_error / rms(right):.2e}")
    print(f"{name} {kind}: {error / rms(right):.2e} of the RMS, peer {their_error / rms(right):.2e}")
    assert error <= 1.1 * their_error, f"RMS error {error:.3e} of {rms(right):.3e}; the peer has {their_error:.3e}"


def test_double(name, polyphase, tmp_path):
    family = FAMILIES[name]()
    double = Narrow(family.module, torch.float64).eval()
    model = export_unfolded(double, family.inputs, tmp_path / "model.onnx")
    polyphase("compile", model, "-o", tmp_path / "model.ppe")
    assert_no_reference(polyphase, tmp_path / "model.ppe")
    (x,) = family.inputs.values()
    right = in_fp64(double, x)
    ours = polyphase.run_arrays(tmp_path / "model.ppe", {key: value.numpy() for key, value in family.inputs.items()}, tmp_path)["out"]
    assert rms(ours - right) <= 4e-8 * rms(right)
