"""The engines that models are exported for, as functions: (model's bytes, inputs by name) → the first output; what they refuse they raise."""
from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import pathlib
import pickle
import subprocess
import tempfile
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from conftest import ROOT

Run = Callable[[bytes, Mapping[str, np.ndarray]], np.ndarray]


class Refused(Exception):
    """The engine does not take the model."""


def onnxruntime(model: bytes, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return session.run(None, dict(inputs))[0]
    except Exception as said:  # noqa: BLE001: its exceptions have no common base but this
        raise Refused(str(said)) from said


def through_onnxruntime(model: bytes, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    import polyphase

    with tempfile.TemporaryDirectory() as folder:
        before, after = pathlib.Path(folder, "before.onnx"), pathlib.Path(folder, "after.onnx")
        before.write_bytes(model)
        polyphase.export(before, after, target="onnxruntime")
        return onnxruntime(after.read_bytes(), inputs)


def standard(model: bytes, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    """ONNX has a checker and no engine: what the checker takes is computed by ONNX Runtime, through our export for it. Whatever went wrong on
    the way, the numbers are held against PyTorch's."""
    import onnx

    parsed = onnx.load_model_from_string(model)
    foreign = {node.domain for node in parsed.graph.node} - {"", "ai.onnx"}
    if foreign:
        raise Refused(f"operators of {foreign}")
    try:
        onnx.checker.check_model(parsed, full_check=True)
    except Exception as said:  # noqa: BLE001
        raise Refused(str(said)) from said
    for node in parsed.graph.node:
        sizes = [attribute.ints for attribute in node.attribute if attribute.name == "output_shape"]
        kernel = [len(tensor.dims) for tensor in parsed.graph.initializer if tensor.name == "w"]
        if sizes and kernel and len(sizes[0]) > kernel[0] - 2:
            raise Refused("output_shape must hold the spatial sizes; the checker does not look when sizes are open")
    return through_onnxruntime(model, inputs)


@functools.cache
def openvino_core():
    import openvino

    return openvino.Core()


def openvino(model: bytes, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    """In FP32 on one thread."""
    core = openvino_core()
    try:
        compiled = core.compile_model(core.read_model(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
        return compiled(dict(inputs))[0]
    except Exception as said:  # noqa: BLE001: RuntimeError, and others of its own
        raise Refused(str(said)) from said


def tensorrt(model: bytes, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    """The stand-in for TensorRT's parser says whether it is taken; ONNX Runtime computes it, through our export for it."""
    from stand_in import tensorrt as trt

    parser = trt.OnnxParser(None, trt.Logger())
    if not parser.parse(model):
        raise Refused("; ".join(parser.get_error(i).desc() for i in range(parser.num_errors)))
    return through_onnxruntime(model, inputs)


@functools.cache
def tvm_worker() -> subprocess.Popen:
    """TVM in a Python of its own: what it is built with stays out of ours."""
    worker = subprocess.Popen([str(TVM_PYTHON), str(pathlib.Path(__file__).with_name("tvm_worker.py"))], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"})
    atexit.register(worker.kill)
    return worker


def tvm(model: bytes, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    worker = tvm_worker()
    pickle.dump((model, dict(inputs)), worker.stdin)
    worker.stdin.flush()
    found, said = pickle.load(worker.stdout)
    if found is None:
        raise Refused(said)
    return found


ENGINES: dict[str, Run] = {"onnx": standard, "onnxruntime": onnxruntime, "openvino": openvino, "tensorrt": tensorrt, "tvm": tvm}
TVM_PYTHON = pathlib.Path(os.environ.get("POLYPHASE_TVM_PYTHON", ROOT / ".venv_tvm/bin/python"))
PACKAGES = {"onnx": "onnx", "onnxruntime": "onnxruntime", "openvino": "openvino", "tensorrt": "onnx"}


def need(target: str, full: bool) -> None:
    """The full run has every engine (scripts/setup exports); others go without those that are not installed."""
    if target == "tvm":
        if not full and not TVM_PYTHON.exists():
            pytest.skip("TVM is not installed: scripts/setup exports")
    elif not full and importlib.util.find_spec(PACKAGES[target]) is None:
        pytest.skip(f"{PACKAGES[target]} is not installed: scripts/setup exports")
