"""The ten families as whole networks, from both exporters, static and dynamic: PyTorch's shapes, and its numbers to FP64.

The bound: RMS error against FP64 PyTorch at most twice ONNX Runtime's on the same file, or at most 3e-7 of the output's RMS. No step may
run an operator's reference loops.
"""

from __future__ import annotations

import json
import random

import numpy as np
import onnxruntime
import pytest
import torch

from conftest import wants_full
from export import EXPORTERS, export_onnx
from networks import FAMILIES

CASES = [(name, exporter, dynamic) for name in FAMILIES for exporter in EXPORTERS for dynamic in (False, True)]


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        full = wants_full(metafunc.config)
        seed = metafunc.config.getoption("--slice-seed")
        cases = CASES
        if not full:  # every family once, in one of its four forms
            rng = random.Random(seed)
            cases = [rng.choice([case for case in CASES if case[0] == name]) for name in FAMILIES]
        metafunc.parametrize("case", cases, ids=["-".join([n, e, "dynamic" if d else "static"]) for n, e, d in cases])


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values.astype(np.float64)))))


def check_numbers(polyphase, engine, session, module64, inputs, folder, record):
    with torch.no_grad():
        right = module64(*[value.double() for value in inputs.values()]).numpy()
    arrays = {name: value.numpy() for name, value in inputs.items()}
    ours = polyphase.run_arrays(engine, arrays, folder)["out"]
    theirs = session.run(None, arrays)[0]
    assert ours.shape == right.shape
    scale, error, ort_error = rms(right), rms(ours - right), rms(theirs - right)
    record(f"{error / scale:.2e} of the RMS, ONNX Runtime {ort_error / scale:.2e}")
    assert error <= max(2 * ort_error, 3e-7 * scale), f"RMS error {error:.3e} of {scale:.3e}; ONNX Runtime has {ort_error:.3e}"


def test_family(case, polyphase, tmp_path, record_property):
    name, exporter, dynamic = case
    family = FAMILIES[name]()
    model = export_onnx(family, tmp_path / "model.onnx", exporter, dynamic)
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    polyphase("compile", model, "-o", tmp_path / "model.ppe")
    steps = json.loads(polyphase("inspect", tmp_path / "model.ppe", "--json").stdout)["steps"]
    slow = [step["node"] for step in steps if step["reference"]]
    assert not slow, f"these steps run reference loops: {slow}"
    module64 = FAMILIES[name]().module.double()

    def record(text):
        record_property("error", text)

    check_numbers(polyphase, tmp_path / "model.ppe", session, module64, family.inputs, tmp_path, record)
    if dynamic:
        check_numbers(polyphase, tmp_path / "model.ppe", session, module64, family.other_inputs, tmp_path, record)
