"""The families of networks, as PyTorch's exporters write them, through the export into each target: PyTorch's numbers."""
from __future__ import annotations

import random

import networks
import numpy as np
import onnx
import torch
from conftest import wants_full
from engines import ENGINES, need
from export import EXPORTERS, export_onnx

import polyphase

TARGETS = sorted(ENGINES)
CASES = [(name, exporter, dynamic) for name in networks.FAMILIES for exporter in EXPORTERS for dynamic in (False, True)]


def pytest_generate_tests(metafunc):
    if "name" not in metafunc.fixturenames:
        return
    rng = random.Random(metafunc.config.getoption("--slice-seed"))
    chosen = [(target, *case) for target in TARGETS for case in CASES]
    if not wants_full(metafunc.config):
        chosen = [(target, *rng.choice([case for case in CASES if case[0] == name])) for target in TARGETS for name in rng.sample(sorted(networks.FAMILIES), 3)]
    # TVM's front end computes no sizes, and its loops are plain: small networks of fixed sizes.
    chosen = [case for case in chosen if case[0] != "tvm" or not case[3]]
    if not wants_full(metafunc.config):
        chosen = [case for case in chosen if case[0] != "tvm"] + [("tvm", "fsrcnn", "torchscript", False)]
    metafunc.parametrize("target, name, exporter, dynamic", chosen)


def test_a_network_gives_pytorchs_numbers(target, name, exporter, dynamic, full, tmp_path):
    need(target, full)
    family = networks.FAMILIES[name]()
    model = export_onnx(family, tmp_path / "model.onnx", exporter, dynamic)
    polyphase.export(model, tmp_path / "out.onnx", target=target)
    inputs = family.other_inputs if dynamic else family.inputs
    with torch.no_grad():
        right = family.module(*inputs.values()).numpy()
    found = ENGINES[target]((tmp_path / "out.onnx").read_bytes(), {key: value.numpy() for key, value in inputs.items()})
    assert found.shape == right.shape
    error = np.sqrt(np.mean((found - right) ** 2) / np.mean(right**2))
    assert error < 1e-5


def test_nodes_that_a_target_takes_stay(tmp_path):
    model = export_onnx(networks.FAMILIES["unet2d"](), tmp_path / "model.onnx", "dynamo", True)
    for target in ("onnx", "onnxruntime", "openvino"):
        report = polyphase.export(model, tmp_path / "out.onnx", target=target)
        assert report["changes"] == [] and (tmp_path / "out.onnx").read_bytes() == model.read_bytes()
        onnx.checker.check_model(onnx.load(tmp_path / "out.onnx"))
